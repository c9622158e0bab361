package meta

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"downpour/encoding"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
)

// everyName gives all UIDs the same name.
type everyName struct{}

func (everyName) Name(context.Context, encoding.UIDKind, encoding.UID) (string, error) {
	return "n", nil
}

func (everyName) Resolve(context.Context, encoding.UIDKind, string) (encoding.UID, error) {
	return nil, errors.ErrUnsupported
}

// described is a store of endlessly many series, each with a TSMeta that has these notes.
func described(notes string) *endlessMeta {
	text := encoding.AppendTSMeta(nil, encoding.TSMeta{Notes: notes})
	return &endlessMeta{faultstore.Endless{Rows: 100, Row: func(n int) store.Row {
		return store.Row{Key: []byte{0, 0, 1, 0, 0, 1, byte(n >> 16), byte(n >> 8), byte(n)},
			Cells: []store.Cell{{Qualifier: []byte(encoding.TSMetaQualifier), Value: text}}}
	}}}
}

type endlessMeta struct{ faultstore.Endless }

func (*endlessMeta) Features() store.Features { return store.Features{} }

func (d *endlessMeta) Get(context.Context, string, string, [][]byte) ([]store.Row, error) {
	return nil, nil
}

// A list of TSMeta ends within a few blocks when its client leaves, and is bounded in bytes and
// by the memory of the process.
func TestTSMetas_bounds(t *testing.T) {
	catalog := func(from *endlessMeta) *Catalog {
		return New(Config{
			Store:     from,
			UIDTable:  "tsdb-uid",
			MetaTable: "tsdb-meta",
			Schema:    encoding.DefaultSchema(),
			Names:     everyName{},
		})
	}
	ctx, leave := context.WithCancel(t.Context())
	from := described("")
	from.Block = func(n int) {
		if n == 3 {
			leave()
		}
	}
	if _, err := catalog(from).TSMetas(ctx, store.KeyRange{}, store.RowFilter{}); !errors.Is(err, context.Canceled) ||
		from.Blocks() > 6 {
		t.Errorf("%v after %d blocks, want that it ends after at most 6", err, from.Blocks())
	}
	from = described(strings.Repeat("x", 1<<20))
	if _, err := catalog(from).TSMetas(t.Context(), store.KeyRange{}, store.RowFilter{}); err == nil ||
		from.Blocks() > 3 {
		t.Errorf("%v after %d blocks, want that it is too large, after at most 3", err, from.Blocks())
	}
	from = described(strings.Repeat("x", 1<<20))
	within := memory.With(t.Context(), memory.New(memory.Least).Open(memory.Query))
	var large *memory.LimitError
	if _, err := catalog(from).TSMetas(within, store.KeyRange{}, store.RowFilter{}); !errors.As(err, &large) {
		t.Errorf("%v, want that the process lacks the memory", err)
	}
}

// The series that wait to be recorded are bounded in bytes, and so are those that are known to
// be recorded.
func TestTracker_bytes(t *testing.T) {
	s := open(t)
	// long returns a row key of series n, which has 100 tags.
	long := func(n int) []byte {
		schema := encoding.DefaultSchema()
		var tags []byte
		for i := range 100 {
			tags = append(tags, 0, 0, byte(i+1), 0, byte(n>>8), byte(n))
		}
		return schema.AppendRowKey(nil, encoding.UID{0, 0, 1}, created, tags)
	}
	const each = seenBytes + 603 // 603: the TSUID of a metric and 100 tags, 3 + 100*6 bytes
	tr := NewTracker(TrackerConfig{
		Config: catalogConfig(s),
		Flags:  Flags{Tracking: true, RealtimeTS: true},
		Every:  time.Hour,
		Bytes:  10 * each,
		Log:    slog.New(slog.DiscardHandler),
	})
	for n := range 100 {
		tr.Stored(long(n), 1)
	}
	tr.mu.Lock()
	if n := len(tr.pending.series); n > 10 {
		t.Errorf("%d series wait, want at most 10", n)
	}
	tr.mu.Unlock()
	for n := range 100 {
		tr.Stored(long(n), 1)
		if err := tr.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(tr.known.set); n > 11 || tr.known.bytes > 10*each {
			t.Errorf("%d series of %d bytes are known to be recorded, want at most 11", n, tr.known.bytes)
		}
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
	if !tr.known.has(string(long(99)[:3]) + string(long(99)[7:])) {
		t.Error("the last series is not known")
	}
}

// What the series that wait are said to take is what they take.
func TestTracker_memory(t *testing.T) {
	const series = 60_000
	tr := tracker(open(t), Flags{Tracking: true})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for n := range series {
		tr.Stored(rowKey(n), 1)
		tr.Stored(rowKey(n/2), 1)
	}
	took := int(heap() - before)
	if got := len(tr.pending.series); got != series {
		t.Errorf("%d series wait, want %d", got, series)
	}
	if said := tr.pending.bytes; took > said*5/4 || took < said/2 {
		t.Errorf("%d series take %d bytes, and are said to take %d", series, took, said)
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
}

// gate is a store whose writes wait for their errors.
type gate struct {
	store.Store
	reply chan error
	cells int // that were written
}

func (*gate) Features() store.Features { return store.Features{} }

func (g *gate) Apply(_ context.Context, _ string, m []store.Mutation) error {
	err := <-g.reply
	if err == nil {
		g.cells += len(m)
	}
	return err
}

// waiting is a tracker for which puts wait, with room for ten series.
func waiting(g *gate) *Tracker {
	return NewTracker(TrackerConfig{
		Config: catalogConfig(g),
		Flags:  Flags{Tracking: true},
		Every:  24 * time.Hour,
		Wait:   true,
		Bytes:  10 * seen{tsuid: "nine byte"}.bytes(),
		Log:    slog.New(slog.DiscardHandler),
	})
}

// puts puts series until one waits, and reports later whether all are put.
func (tr *Tracker) puts(series int) (ended *atomic.Bool) {
	ended = new(atomic.Bool)
	go func() {
		for n := range series {
			tr.Stored(rowKey(n), 1)
		}
		ended.Store(true)
	}()
	synctest.Wait()
	return ended
}

// settle lets writes succeed until none waits.
func (g *gate) settle() {
	for {
		synctest.Wait()
		select {
		case g.reply <- nil:
		default:
			return
		}
	}
}

// Where puts wait for room, none of many new series is missing.
func TestTracker_wait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{reply: make(chan error)}
		tr := waiting(g)
		ended := tr.puts(45)
		if n := len(tr.pending.series); n != 10 {
			t.Errorf("next to a write %d series are collected, want 10", n)
		}
		g.settle()
		if !ended.Load() {
			t.Error("puts wait though all is written")
		}
		go func() { _ = tr.Close() }() // which writes what is left
		g.settle()
		if g.cells != 45 {
			t.Errorf("%d series are written, want 45", g.cells)
		}
	})
}

// Puts do not wait when a write has failed, for a closed tracker, or for more room than there is.
func TestTracker_waitsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{reply: make(chan error)}
		tr := waiting(g)
		ended := tr.puts(45)
		if ended.Load() {
			t.Error("puts did not wait for a write")
		}
		g.reply <- errors.New("no such table")
		synctest.Wait()
		if !ended.Load() {
			t.Error("puts wait though a write has failed")
		}
		g.settle()

		ended = tr.puts(1)
		large := new(atomic.Bool)
		go func() {
			tr.Stored(slices.Concat(rowKey(0), bytes.Repeat(rowKey(0)[7:], 1000)), 1)
			large.Store(true)
		}()
		g.settle()
		if !ended.Load() || !large.Load() {
			t.Error("a series that is larger than the room waits for it")
		}

		ended = tr.puts(45)
		closed := make(chan error, 1)
		go func() { closed <- tr.Close() }()
		synctest.Wait()
		if !ended.Load() {
			t.Error("puts wait for a tracker that is closed")
		}
		g.settle()
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// bytes returns about the memory that meta data takes: at least its texts, and at most twice its
// JSON.
func TestTSMeta_bytes(t *testing.T) {
	m := TSMeta{Notes: strings.Repeat("n", 1000), Custom: map[string]string{"k": strings.Repeat("v", 1000)},
		Tags: []UIDMeta{
			{Description: strings.Repeat("d", 1000), Custom: map[string]string{"k": strings.Repeat("v", 1000)}},
		}}
	text, err := json.Marshal(m)
	if err != nil || m.bytes() < 4000 || m.bytes() > 2*len(text) {
		t.Error(fmt.Errorf("%d bytes of %d as JSON, %w", m.bytes(), len(text), err))
	}
}
