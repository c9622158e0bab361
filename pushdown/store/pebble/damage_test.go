package pebble

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
)

var soak = flag.Bool("soak", false, "run the long forms of the tests that have one")

// image is the files of a store's directory.
type image map[string][]byte

// take reads the files of directory data.
func take(t testing.TB, files vfs.FS) image {
	t.Helper()
	names, err := files.List("data")
	if err != nil {
		t.Fatal(err)
	}
	out := image{}
	for _, name := range names {
		f, err := files.Open("data/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if out[name], err = io.ReadAll(f); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// takeKilled reads the files of a store that is open as a kill leaves them: pebble may delete some while they are read
// one after another.
func takeKilled(t testing.TB, files *vfs.MemFS) image {
	t.Helper()
	return take(t, files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))}))
}

// files makes a file system of an image.
func (i image) files(t testing.TB) *vfs.MemFS {
	t.Helper()
	files := vfs.NewMem()
	if err := files.MkdirAll("data", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range i {
		f, err := files.Create("data/"+name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(bytes.Clone(data)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// with is the image with one file changed.
func (i image) with(name string, data []byte) image {
	out := maps.Clone(i)
	out[name] = data
	return out
}

// smallStore writes some batches, half of which are in tables and the others in
// the log, some of them to a row that is sealed, and returns the directory as a kill and as a clean end leave it, and
// what a scan answers.
func smallStore(t testing.TB) (killed, closed image, want string) {
	t.Helper()
	files := vfs.NewCrashableMem()
	opts := sealedOptions(files)
	opts.CacheBytes = 1 << 20
	s, err := Open("data", opts)
	if err != nil {
		t.Fatal(err)
	}
	create(t, s)
	for i := range 12 {
		if i%5 == 1 {
			appendEntries(t, s, 0, 0, sealedEntries(0, i)[:90])
		}
		apply(t, s, cell(store.Append, fmt.Sprintf("row%02d", i%8), "q", fmt.Sprintf("<%d>", i)),
			cell(store.Put, fmt.Sprintf("put%02d", i), "q", "v"))
		if i == 3 || i == 6 {
			if err := s.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if report := sealAll(t, s, hourEnd(0)); report.Sealed != 1 {
				t.Fatalf("%+v, want a row sealed", report)
			}
		}
	}
	want = dump(t, s, store.Scan{})
	// Compactions and deletions that flushes have caused end first, so that each run has the same
	// files.
	for s.db.Metrics().Compact.NumInProgress > 0 {
		<-time.After(time.Millisecond)
	}
	s.db.TestOnlyWaitForCleaning()
	// A crash brings files back whose deletion was not synced.
	if err := syncDir(files, "data"); err != nil {
		t.Fatal(err)
	}
	killed = takeKilled(t, files)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return killed, take(t, files), want
}

// reading opens an image and reads all of it. err is a refusal, of Open or of
// the scan; told is what was logged.
func reading(t testing.TB, i image, opts Options) (got, told string, err error) {
	t.Helper()
	var log bytes.Buffer
	opts.FS, opts.IdleFlush, opts.CacheBytes = i.files(t), -1, 1<<20
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s, err := Open("data", opts)
	if err != nil {
		return "", log.String(), err
	}
	got, err = all(s)
	err = errors.Join(err, s.Close())
	return got, log.String(), err
}

// all is a scan of table tsdb.
func all(s *Store) (string, error) {
	sc, err := s.Scan(context.Background(), store.Scan{Table: "tsdb"})
	if err != nil {
		return "", err
	}
	defer sc.Close()
	var b strings.Builder
	for {
		rows, err := sc.Next()
		if err == io.EOF {
			return b.String(), nil
		}
		if err != nil {
			return b.String(), err
		}
		for _, r := range rows {
			for _, c := range r.Cells {
				fmt.Fprintf(&b, "%s/%s:%s=%s ", r.Key, c.Family, c.Qualifier, c.Value)
			}
		}
	}
}

// harm is one change of one file.
type harm struct {
	file string
	at   int
	how  string
}

// do returns the file's bytes with the harm done, nil if nothing changes.
func (h harm) do(data []byte, rng *rand.Rand) []byte {
	out := bytes.Clone(data)
	switch h.how {
	case "flipped":
		out[h.at] ^= 1 << rng.IntN(8)
	case "zeroed":
		if out[h.at] == 0 {
			return nil
		}
		out[h.at] = 0
	case "cut":
		out = out[:h.at]
	}
	return out
}

// harms returns all harms to an image, but of the zeros at a file's end only some.
func harms(i image) (out []harm) {
	for _, name := range slices.Sorted(maps.Keys(i)) {
		used := len(bytes.TrimRight(i[name], "\x00"))
		for at := range i[name] {
			if at > used+100 && at%997 != 0 && at < len(i[name])-2 {
				continue
			}
			for _, how := range []string{"flipped", "zeroed", "cut"} {
				out = append(out, harm{name, at, how})
			}
		}
	}
	return out
}

// kindOf returns a file's name without its number.
func kindOf(name string) string {
	digits := strings.NewReplacer("0", "", "1", "", "2", "", "3", "", "4", "",
		"5", "", "6", "", "7", "", "8", "", "9", "")
	return strings.TrimSuffix(strings.TrimLeft(digits.Replace(name), "."), "-")
}

// outcome says what became of a harm. It fails the test if that is wrong.
func outcome(t *testing.T, i image, h harm, want string) string {
	got, told, err := reading(t, i, Options{})
	switch {
	case err == nil && got == want && strings.Contains(told, h.file):
		return "all, and told"
	case err == nil && got == want:
		return "all"
	case err == nil && strings.Contains(told, h.file):
		return "less, and told"
	case err == nil:
		t.Errorf("%+v: got %q, want %q\n%s", h, got, want, told)
		return ""
	}
	var damaged *store.DamageError
	if !errors.As(err, &damaged) {
		if !strings.Contains(err.Error(), h.file) {
			t.Errorf("%+v: %v, want the file named", h, err)
		}
		return "an error"
	}
	got, told, err = reading(t, i, Options{Salvage: true})
	switch {
	case !strings.Contains(damaged.Error(), h.file):
		t.Errorf("%+v: %v, want the file named", h, damaged)
	case err != nil:
		t.Errorf("%+v, salvaged: %v", h, err)
	case !strings.Contains(told, h.file):
		t.Errorf("%+v, salvaged: the log does not name the file: %s", h, told)
	case got == want:
		return "refused, all salvaged"
	case len(got) > len(want):
		t.Errorf("%+v, salvaged: got %q, want %q", h, got, want)
	}
	return "refused, some salvaged"
}

// If one byte of one file is flipped or zeroed, or a file is cut there, after a kill or a clean
// end, all points are read, or an error or a log line names the file. A store that refuses to open
// because of it opens with Salvage, with what is whole.
func TestDamage(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	killed, closed, want := smallStore(t)
	for state, i := range map[string]image{"killed": killed, "closed": closed} {
		list := harms(i)
		if !*soak {
			rng.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
			list = list[:300]
		}
		count := map[string]int{}
		for _, h := range list {
			if data := h.do(i[h.file], rng); data != nil && !t.Failed() {
				count[kindOf(h.file)+" "+h.how+": "+outcome(t, i.with(h.file, data), h, want)]++
			}
		}
		for _, what := range slices.Sorted(maps.Keys(count)) {
			t.Logf("%s, %s: %d", state, what, count[what])
		}
	}
}

// A damaged file of pebble's options is set aside, and the store opens. One that names another comparer is that of
// another store, which does not.
func TestDamage_options(t *testing.T) {
	_, whole, want := smallStore(t)
	var name string
	for n := range whole {
		if strings.HasPrefix(n, "OPTIONS-") {
			name = max(name, n)
		}
	}
	opts := func(files vfs.FS) Options {
		opts := sealedOptions(files)
		opts.Logger = quiet()
		return opts
	}
	files := whole.with(name, []byte("no options")).files(t)
	s, err := Open("data", opts(files))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := all(s); err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := files.Stat("data/damaged-" + name); err != nil {
		t.Error(err)
	}

	// So is one that cannot be read.
	files = whole.files(t)
	var reads atomic.Int64
	s, err = Open("data", opts(errorfs.Wrap(files, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileRead && op.Path == "data/"+name && reads.Add(1) == 1 {
			return syscall.EIO
		}
		return nil
	}))))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := files.Stat("data/damaged-" + name); err != nil {
		t.Error(err)
	}

	other := bytes.Replace(whole[name], []byte("comparer="), []byte("comparer=another."), 1)
	_, err = Open("data", opts(whole.with(name, other).files(t)))
	var damage *store.DamageError
	if !errors.As(err, &damage) || !strings.Contains(err.Error(), "of another store") {
		t.Errorf("got %v, want that the store is another", err)
	}
}
