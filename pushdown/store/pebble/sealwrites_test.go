package pebble

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
)

// sealedWorld is a store whose rows change while they are sealed, at moments that a seed draws: before tables are
// read.
type sealedWorld struct {
	t     *testing.T
	r     *rand.Rand
	files *vfs.MemFS
	s     *Store

	want map[string]string // what is acknowledged of cells
	done int               // changes
	held int               // moments at which sealing held writers back
	off  atomic.Bool
}

const sealedWorldSeries, sealedWorldHours = 40, 2

func newSealedWorld(t *testing.T) *sealedWorld {
	w := &sealedWorld{t: t, r: seedtest.Rand(t), files: vfs.NewCrashableMem(), want: map[string]string{}}
	w.off.Store(true)
	opts := sealedOptions(errorfs.Wrap(w.files, errorfs.InjectorFunc(w.moment)))
	opts.CacheBytes = 1 // so that tables are read
	w.s = openMem(t, opts)
	create(t, w.s)
	return w
}

// moment is called before each operation on a file.
func (w *sealedWorld) moment(op errorfs.Op) error {
	if w.off.Load() || op.Kind != errorfs.OpFileReadAt || !strings.HasSuffix(op.Path, ".sst") || !insideStep() {
		return nil
	}
	// Where writers wait no change can come in between.
	if !w.s.change.TryRLock() {
		w.held++
		return nil
	}
	w.s.change.RUnlock()
	w.off.Store(true)
	for range w.r.IntN(4) {
		w.change()
	}
	if w.r.IntN(40) == 0 {
		w.crash()
	}
	w.off.Store(false)
	return nil
}

// insideStep reports whether a step of sealing called, and not a compaction, which a change may have to wait for.
func insideStep() bool {
	pcs := make([]uintptr, 50)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, "(*sealing).step") {
			return true
		}
		if !more {
			return false
		}
	}
}

func cellName(row []byte) string { return fmt.Sprintf("%x 050000 0", row) }

// append puts late or other points into a row.
func (w *sealedWorld) append(series, hour int, entries []byte) {
	appendEntries(w.t, w.s, series, hour, entries)
	w.want[cellName(sealedRow(series, hour))] += string(entries)
}

// change changes a drawn row, or a range of rows. It reads nothing: the block that is about to be read waits for this.
func (w *sealedWorld) change() {
	w.done++
	series, hour := w.r.IntN(sealedWorldSeries), w.r.IntN(sealedWorldHours)
	row := sealedRow(series, hour)
	switch what := w.r.IntN(12); what {
	case 0:
		apply(w.t, w.s, store.Mutation{Kind: store.DeleteRow, Row: row, Family: "t"})
		delete(w.want, cellName(row))
	case 1:
		apply(w.t, w.s, store.Mutation{Kind: store.DeleteCell, Row: row, Family: "t", Qualifier: encoding.AppendColumn})
		delete(w.want, cellName(row))
	case 2, 3:
		stop := sealedRow(min(series+w.r.IntN(3), sealedWorldSeries), hour)
		if err := w.s.DeleteRows(w.t.Context(), "tsdb", []store.KeyRange{{Start: row, Stop: stop}}); err != nil {
			w.t.Error(err)
		}
		for name := range w.want {
			if name >= cellName(row) && name < cellName(stop) {
				delete(w.want, name)
			}
		}
	case 4:
		w.append(series, hour, sealedEntries(w.r.IntN(20), w.r.IntN(20)))
	default: // entries of three bytes
		w.append(series, hour, sealedEntries(5*w.r.IntN(4), w.r.IntN(20))[:3*(1+w.r.IntN(60))])
	}
}

// crash reads what a crash now could leave: nothing of what was acknowledged is lost or has come back.
func (w *sealedWorld) crash() {
	left := w.files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: w.r.IntN(101), RNG: w.r})
	s, err := Open("data", sealedOptions(left))
	if err != nil {
		w.t.Errorf("open after a crash: %v", err)
		return
	}
	defer s.Close()
	wantCells(w.t, s, w.want)
}

// Rows that get points, or are deleted alone or in ranges, while they are sealed, are what they
// are without sealing: nothing that was deleted comes back, and no late point is lost.
//
//fault:sealed-while-others-write defer p.s.change.Unlock() => p.s.change.Unlock()
func TestSeal_writes(t *testing.T) {
	t.Parallel()
	w := newSealedWorld(t)
	rounds := 8
	if *soak {
		rounds = 400
	}
	sealed := int64(0)
	for round := range rounds {
		for series := range sealedWorldSeries {
			for hour := range sealedWorldHours {
				if round == 0 || w.r.IntN(3) == 0 {
					w.append(series, hour, sealedEntries(series, hour+round))
				}
			}
		}
		if err := w.s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.off.Store(false)
		sealed += sealAll(t, w.s, hourEnd(sealedWorldHours)).Sealed
		w.off.Store(true)
		wantCells(t, w.s, w.want)
	}
	w.crash()
	if sealed == 0 || w.done < 10*rounds || w.held == 0 {
		t.Errorf("%d rows sealed, %d changes while that was done, %d moments at which writers wait: "+
			"the test tries too little", sealed, w.done, w.held)
	}
	t.Logf("%d rows sealed, %d changes while that was done, %d moments at which writers wait", sealed, w.done, w.held)
}

// A crash at any moment of sealing leaves rows that say what was acknowledged, while they are written to.
func TestSeal_crash(t *testing.T) {
	t.Parallel()
	r := seedtest.Rand(t)
	files := vfs.NewCrashableMem()
	opts := sealedOptions(files)
	opts.MemTableBytes = 64 << 10
	s := openMem(t, opts)
	create(t, s)
	const series = 150
	acked := [series]string{}
	put := func(i int, entries []byte) {
		appendEntries(t, s, i, 0, entries)
		acked[i] += string(entries)
	}
	for i := range series {
		put(i, sealedEntries(i, 0))
	}
	states := 60
	if *soak {
		states = 2000
	}
	for round := 0; states > 0; round++ {
		_, err := s.Seal(t.Context(), "tsdb", time.Time{}, hourEnd(0), func(store.SealReport) error {
			for range 3 {
				put(r.IntN(series), sealedEntries(r.IntN(20), round)[:r.IntN(120)/12*12])
			}
			states--
			return crashSealed(files, r, acked[:])
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range series {
			put(i, sealedEntries(i, round)[:120])
		}
	}
}

// crashSealed opens what a crash now could leave, and compares it with what was acknowledged.
func crashSealed(files *vfs.MemFS, r *rand.Rand, acked []string) error {
	left := files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
	s, err := Open("data", sealedOptions(left))
	if err != nil {
		return fmt.Errorf("open after a crash: %w", err)
	}
	defer s.Close()
	var keys [][]byte
	for i := range acked {
		keys = append(keys, sealedRow(i, 0))
	}
	rows, err := s.Get(context.Background(), "tsdb", "t", keys)
	if err != nil || len(rows) != len(acked) {
		return fmt.Errorf("%d rows after a crash, %w", len(rows), err)
	}
	for i, row := range rows {
		if got := string(row.Cells[0].Value); got != acked[i] {
			return fmt.Errorf("row %d after a crash: % x, want % x", i, got, acked[i])
		}
	}
	return nil
}

// A row that takes no less as columns stays as it was put: writing it again would gain nothing.
//
//fault:sealed-for-nothing len(c.sealed) >= len(stored) => false
func TestSeal_noGain(t *testing.T) {
	t.Parallel()
	s := openMem(t, sealedOptions(nil))
	create(t, s)
	r := seedtest.Rand(t)
	var entries []byte
	for i := range int32(30) {
		q := encoding.Qualifier{OffsetMS: i*1000 + r.Int32N(1000), Milli: true, Float: i%2 == 0, Width: 8}
		entries = encoding.AppendEntry(entries, q, binary.BigEndian.AppendUint64(nil, r.Uint64()))
		q = encoding.Qualifier{OffsetMS: 3_599_000 - i*1000, Width: 1} // descending, each a block of its own
		entries = encoding.AppendEntry(entries, q, []byte{byte(i)})
	}
	appendEntries(t, s, 0, 0, entries)
	if report := sealAll(t, s, hourEnd(0)); report.Rows != 1 || report.Sealed != 0 || s.disk.Columns() {
		t.Errorf("%+v, want the row left as it is, and a store that older releases do not refuse", report)
	}
	wantCells(t, s, map[string]string{cellName(sealedRow(0, 0)): string(entries)})
}
