package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"golang.org/x/sync/errgroup"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
)

// crashStates is how many file systems, each as a crash could leave it, are opened and read; with
// -soak they are 5,000. crashRoundStates of them are left by one store.
const (
	crashStates      = 240
	crashRoundStates = 40
)

// crashWriter writes batches 1, 2, 3, … to rows of its own. Batch n puts n
// into one row and appends a point of the value n to the next, so that what is found after a crash
// shows which batches are there. Rows of points are sealed as they grow.
type crashWriter struct {
	id              int
	begun, acked    atomic.Uint32
	counted, wanted atomic.Int64 // increments acknowledged, and begun
}

func (w *crashWriter) row(name string) string { return fmt.Sprintf("w%d-%s", w.id, name) }

// points is the row that points are appended to.
func (w *crashWriter) points() []byte { return sealedRow(w.id, 0) }

// entry is the point of a batch.
func entry(n uint32) []byte {
	return encoding.AppendEntry(nil, encoding.Qualifier{OffsetMS: int32(n%3600) * 1000, Width: 4}, []byte(number(n)))
}

// number is a batch's number as written.
func number(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

// run writes until ctx ends.
func (w *crashWriter) run(ctx context.Context, s *Store, rng *rand.Rand) error {
	for ctx.Err() == nil {
		n := w.begun.Add(1)
		if _, err := s.Staged().Increment(context.Background(), "tsdb",
			store.CellKey{Row: []byte(w.row("staged")), Family: "t"}, 1); err != nil {
			return err
		}
		ms := []store.Mutation{cell(store.Put, w.row("put"), "q", number(n)),
			{Kind: store.Append, Row: w.points(), Family: "t", Qualifier: encoding.AppendColumn, Value: entry(n)},
			cell(store.Put, w.row("filler"), fmt.Sprint(n%50), strings.Repeat("x", rng.IntN(2000)))}
		if err := s.Apply(context.Background(), "tsdb", ms); err != nil {
			return err
		}
		w.acked.Store(n)
		w.wanted.Add(1)
		if _, err := s.Increment(context.Background(), "tsdb",
			store.CellKey{Row: []byte(w.row("counter")), Family: "t"}, 1); err != nil {
			return err
		}
		w.counted.Add(1)
	}
	return nil
}

// check reads a writer's rows after a crash. They must hold all that was acknowledged before it,
// and nothing that was not begun.
func (w *crashWriter) check(s *Store, acked, begun uint32, counted, wanted int64) error {
	found := map[string][]byte{}
	rows, err := s.Get(context.Background(), "tsdb",
		"t", [][]byte{[]byte(w.row("put")), w.points(), []byte(w.row("counter")), []byte(w.row("staged"))})
	if err != nil {
		return err
	}
	for _, r := range rows {
		found[string(r.Key)] = r.Cells[0].Value
	}
	var n uint32
	if v := found[w.row("put")]; len(v) == 4 {
		n = binary.BigEndian.Uint32(v)
	}
	if n < acked || n > begun {
		return fmt.Errorf("writer %d: batch %d is the last, %d were acknowledged, %d begun", w.id, n, acked, begun)
	}
	var log []byte
	for i := range n {
		log = append(log, entry(i+1)...)
	}
	if !bytes.Equal(found[string(w.points())], log) {
		return fmt.Errorf("writer %d: put shows %d batches, the appended cell holds %x",
			w.id, n, found[string(w.points())])
	}
	if v := found[w.row("staged")]; n > 0 && (len(v) != 8 || binary.BigEndian.Uint64(v) < uint64(n)) {
		return fmt.Errorf("writer %d: batch %d is there, the counter that was raised before is %x", w.id, n, v)
	}
	var count int64
	if v := found[w.row("counter")]; len(v) == 8 {
		count = int64(binary.BigEndian.Uint64(v))
	}
	if count < counted || count > wanted {
		return fmt.Errorf("writer %d: counter is %d, %d increments were acknowledged, %d begun",
			w.id, count, counted, wanted)
	}
	return nil
}

// Every acknowledged write survives a crash at any moment, and batches are whole, whatever part of
// the unsynced bytes reached the disk.
//
//fault:ack-before-sync s.awaitDurable(b) => nil
func TestCrash(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	most := crashStates
	if *soak {
		most = 5000
	}
	states, sealed := 0, int64(0)
	for states < most && !t.Failed() {
		states += crashRound(t, rng, crashRoundStates, &sealed)
	}
	t.Logf("%d states, rows sealed %d times", states, sealed)
	if sealed == 0 {
		t.Error("no row was sealed: the test tries too little")
	}
}

// crashRound crashes one store so many times with writers at work, and rows being sealed, then while it is closed, and
// while it is opened after a crash. It returns how many states were looked at.
func crashRound(t *testing.T, rng *rand.Rand, states int, sealed *int64) int {
	files := vfs.NewCrashableMem()
	opts := sealedOptions(files)
	opts.MemTableBytes = 64 << 10
	s := openMem(t, opts)
	create(t, s)
	ctx, stop := context.WithCancel(context.Background())
	g, ctx := errgroup.WithContext(ctx)
	writers := make([]*crashWriter, 3)
	for i := range writers {
		writers[i] = &crashWriter{id: i}
		own := rand.New(rand.NewPCG(rng.Uint64(), 2))
		g.Go(func() error { return writers[i].run(ctx, s, own) })
	}
	g.Go(func() error {
		for ctx.Err() == nil {
			report, err := s.Seal(context.Background(), "tsdb", time.Time{}, hourEnd(0), func(store.SealReport) error {
				return nil
			})
			if *sealed += report.Sealed; err != nil {
				return err
			}
			runtime.Gosched()
		}
		return nil
	})
	for range states {
		before := writers[0].acked.Load()
		for until := before + uint32(rng.IntN(5)); writers[0].acked.Load() < until && ctx.Err() == nil; {
			runtime.Gosched()
		}
		if err := crashOnce(files, rng, writers); err != nil {
			t.Error(err)
			break
		}
	}
	stop()
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	left := files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
	states += crashDuring(t, files, rng, writers, s.Close)
	return states + crashDuring(t, left, rng, writers, func() error {
		again := opts
		again.FS = left
		s, err := Open("data", again)
		if err != nil {
			return err
		}
		return s.Close()
	})
}

// crashDuring crashes a store again and again until do has ended, and returns how often.
func crashDuring(t *testing.T, files *vfs.MemFS, rng *rand.Rand, writers []*crashWriter, do func() error) (states int) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	for {
		if err := crashOnce(files, rng, writers); err != nil {
			t.Error(err)
		}
		states++
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return states
		default:
		}
	}
}

// crashOnce opens and checks what a crash at this moment could leave.
func crashOnce(files *vfs.MemFS, rng *rand.Rand, writers []*crashWriter) error {
	type progress struct {
		acked   uint32
		counted int64
	}
	before := make([]progress, len(writers))
	for i, w := range writers {
		before[i] = progress{w.acked.Load(), w.counted.Load()}
	}
	left := files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
	s, err := Open("data", sealedOptions(left))
	if err != nil {
		return fmt.Errorf("open after a crash: %w", err)
	}
	for i, w := range writers {
		err = errors.Join(err, w.check(s, before[i].acked, w.begun.Load(), before[i].counted, w.wanted.Load()))
	}
	return errors.Join(err, s.Close())
}

// A log write that fails is never acknowledged, not even as an error: the
// process ends, with one line that names the directory.
func TestFailedSyncEndsTheProcess(t *testing.T) {
	var log bytes.Buffer
	exits := make(chan int, 100)
	broken := errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if strings.HasSuffix(op.Path, ".log") && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) {
			return errorfs.ErrInjected
		}
		return nil
	})}
	s, err := Open("data", Options{
		FS:     errorfs.Wrap(vfs.NewMem(), &broken),
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Exit: func(code int) {
			exits <- code
			runtime.Goexit()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	create(t, s)
	broken.On()
	acknowledged := make(chan error, 1)
	go func() {
		defer close(acknowledged)
		acknowledged <- s.Apply(context.Background(), "tsdb", []store.Mutation{cell(store.Put, "r", "q", "v")})
	}()
	if err, answered := <-acknowledged; answered {
		t.Errorf("apply returned %v", err)
	}
	select {
	case code := <-exits:
		if code != 1 {
			t.Errorf("exit code %d, want 1", code)
		}
	default:
		t.Error("the process did not end")
	}
	if line := log.String(); !strings.Contains(line, "the process ends") || !strings.Contains(line, "dir=data") ||
		strings.Count(line, "\n") != 1 {
		t.Errorf("log: %q, want one line", line)
	}
	broken.Off()
	_ = s.Close() // frees what the test holds; a real process is gone by now
}
