package pebble

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
)

// breakage says what fails: an operation on a kind of file, after so many of them were done, once
// or always from then on.
type breakage struct {
	file    string // log, manifest, table, marker, directory
	op      string // create, write, sync
	after   int64
	forever bool
}

var (
	brokenDir = flag.String("broken-dir", "", "of the process that TestBrokenDisk starts: where its store is")
	broken    breakage
)

func init() {
	flag.StringVar(&broken.file, "broken-file", "", "kind of files that fail")
	flag.StringVar(&broken.op, "broken-op", "", "operation that fails")
	flag.Int64Var(&broken.after, "broken-after", 0, "so many are done before")
	flag.BoolVar(&broken.forever, "broken-forever", false, "all fail from then on")
}

// of reports whether the breakage is about an operation.
func (b breakage) of(op errorfs.Op) bool {
	base := filepath.Base(op.Path)
	files := map[string]bool{
		"log": strings.HasSuffix(base, ".log"), "table": strings.HasSuffix(base, ".sst"),
		"manifest": strings.Contains(base, "MANIFEST-") && !strings.HasPrefix(base, "marker."),
		"marker":   strings.HasPrefix(base, "marker."), "directory": base == "data",
	}
	ops := map[string][]errorfs.OpKind{
		"create": {errorfs.OpCreate}, "write": {errorfs.OpFileWrite, errorfs.OpFileWriteAt},
		"sync":   {errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo},
		"rename": {errorfs.OpRename}, "remove": {errorfs.OpRemove},
	}
	for _, kind := range ops[b.op] {
		if kind == op.Kind && files[b.file] {
			return true
		}
	}
	return false
}

// fs returns a file system that fails so once on is set.
func (b breakage) fs(on *atomic.Bool) vfs.FS {
	var done atomic.Int64
	return errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !on.Load() || !b.of(op) {
			return nil
		}
		if n := done.Add(1); n <= b.after || n > b.after+1 && !b.forever {
			return nil
		}
		return &os.PathError{Op: b.op, Path: op.Path, Err: syscall.EIO}
	}))
}

const (
	brokenRows = 300
	// brokenSeries are the rows of points that are sealed.
	brokenSeries = 6
)

// brokenEntries are the points of a row that a batch appends to.
func brokenEntries(n int) []byte { return sealedEntries(n%brokenSeries, n) }

// The process of TestBrokenDisk: it writes rows to a store on a disk that fails
// and says of each that it was acknowledged.
func TestBrokenDisk_process(t *testing.T) {
	if *brokenDir == "" {
		return // only that process has something to do
	}
	var on atomic.Bool
	opts := sealedOptions(broken.fs(&on))
	opts.MemTableBytes, opts.Logger = 64<<10, slog.New(slog.NewTextHandler(os.Stderr, nil))
	s, err := Open(*brokenDir, opts)
	if err != nil {
		t.Fatal(err)
	}
	create(t, s)
	on.Store(true)
	for n := range brokenRows {
		err := s.Apply(context.Background(),
			"tsdb", []store.Mutation{cell(store.Put, fmt.Sprintf("row%03d", n), "q", strings.Repeat("x", 300)),
				cell(store.Append, "all", "q", fmt.Sprintf("%03d ", n)),
				{
					Kind:      store.Append,
					Row:       sealedRow(n%brokenSeries, 0),
					Family:    "t",
					Qualifier: encoding.AppendColumn,
					Value:     brokenEntries(n),
				}})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("acknowledged %d\n", n)
		if n%60 == 59 {
			if _, err := s.db.AsyncFlush(); err != nil {
				t.Fatal(err)
			}
			// Whether it fails or not, nothing is lost by it. A disk that fails for ever would keep it waiting.
			within, stop := context.WithTimeout(context.Background(), time.Second)
			report, err := s.Seal(within, "tsdb", time.Time{}, hourEnd(0), func(store.SealReport) error { return nil })
			fmt.Printf("sealed %d: %v\n", report.Sealed, err)
			stop()
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// run runs the process, and returns the number of rows acknowledged and sealed, what it
// logged, and how it ended.
func (b breakage) run(t *testing.T, dir string) (acked, sealed int, log string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBrokenDisk_process$", "-test.timeout=5m",
		"-broken-dir="+dir, "-broken-file="+b.file, "-broken-op="+b.op, fmt.Sprintf("-broken-after=%d", b.after),
		fmt.Sprintf("-broken-forever=%t", b.forever))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	for lines := bufio.NewScanner(bytes.NewReader(out.Bytes())); lines.Scan(); {
		var n int
		if _, e := fmt.Sscanf(lines.Text(), "acknowledged %d", &n); e == nil {
			acked = n + 1
		}
		if _, e := fmt.Sscanf(lines.Text(), "sealed %d", &n); e == nil {
			sealed += n
		}
	}
	return acked, sealed, errs.String() + out.String(), err
}

// wantPoints reads the rows of points of a store: they have the points of the batches that were acknowledged, and maybe
// of the next one, in their order.
func (b breakage) wantPoints(t *testing.T, s *Store, acked int) {
	t.Helper()
	for series := range brokenSeries {
		var want []byte
		for n := series; n < acked; n += brokenSeries {
			want = append(want, brokenEntries(n)...)
		}
		rows, err := s.Get(t.Context(), "tsdb", "t", [][]byte{sealedRow(series, 0)})
		var got []byte
		if len(rows) > 0 {
			got = rows[0].Cells[0].Value
		}
		more := bytes.TrimPrefix(got, want)
		if err != nil || !bytes.HasPrefix(got, want) || len(more) > 0 && !bytes.Equal(more, brokenEntries(acked)) {
			t.Errorf("%+v: row of points %d has %d bytes, %v, want %d of %d batches that were acknowledged",
				b, series, len(got), err, len(want), acked)
		}
	}
}

// Writes, syncs and creations fail, once or for ever, while points are put and rows are sealed: the process goes on,
// refuses writes with the reason, or ends with a line that says why; what was acknowledged is there when the disk is
// sound again.
func TestBrokenDisk(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	var all []breakage
	for _, file := range []string{"log", "manifest", "table", "marker", "directory"} {
		for _, op := range []string{"create", "write", "sync", "remove"} {
			if file == "directory" && op != "sync" || file == "marker" && (op == "write" || op == "sync") {
				continue
			}
			for _, forever := range []bool{false, true} {
				for range 6 {
					all = append(all, breakage{file, op, rng.Int64N(12), forever})
				}
			}
		}
	}
	if !*soak {
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = append(all[:7], breakage{"log", "create", 1, true}) // for which the process ends
	}
	ended := map[string]int{}
	rows := 0
	for _, b := range all {
		dir := filepath.Join(t.TempDir(), "data")
		acked, sealed, log, err := b.run(t, dir)
		rows += sealed
		how := "goes on"
		if err != nil {
			how = "ends"
			if refused := strings.Contains(log, "the store takes no writes: "); refused { // at which this process ends
				how = "refuses writes"
			} else if !strings.Contains(log, "cannot write, the process ends") {
				t.Errorf("%+v: %v, and no line says why: %.3000s", b, err, log)
			}
		}
		for _, bad := range []string{"panic:", "fatal error:", "goroutine "} {
			if strings.Contains(log, bad) {
				t.Errorf("%+v: the process panics or dumps goroutines: %.3000s", b, log)
				break
			}
		}
		if lines := strings.Count(log, "embedded store"); lines > 6 {
			t.Errorf("%+v: %d lines are logged, want at most 6: %.3000s", b, lines, log)
		}
		ended[fmt.Sprintf("%s %s, forever %t: %s", b.file, b.op, b.forever, how)]++
		s, err := Open(dir, sealedOptions(nil))
		if err != nil {
			t.Errorf("%+v, afterwards: %v", b, err)
			continue
		}
		for n := range acked {
			if rows, err := s.Get(t.Context(), "tsdb", "t", [][]byte{fmt.Appendf(nil, "row%03d", n)}); err != nil ||
				len(rows) != 1 {
				t.Errorf("%+v: row %d of %d that were acknowledged: %v, %v", b, n, acked, rows, err)
				break
			}
		}
		b.wantPoints(t, s, acked)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if rows == 0 {
		t.Error("no row was sealed: the test tries too little")
	}
	for what, n := range ended {
		t.Log(what, n)
	}
}
