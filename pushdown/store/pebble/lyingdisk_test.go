package pebble

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
)

// lyingDisk says that files of a kind are on disk when they are not.
type lyingDisk struct {
	vfs.FS
	about string // what their names contain
}

func (d lyingDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, category)
	if err == nil && strings.Contains(name, d.about) && !strings.Contains(name, "marker.") {
		return lyingFile{f}, nil
	}
	return f, err
}

type lyingFile struct{ vfs.File }

func (lyingFile) Sync() error                { return nil }
func (lyingFile) SyncData() error            { return nil }
func (lyingFile) SyncTo(int64) (bool, error) { return false, nil }

// If a disk says that logs, MANIFESTs or tables are synced before they are, and then loses power,
// either all that was acknowledged is read, sealed or not, or an error or a log line says that something is
// missing. Blocks of 4 KiB get lost. If they are the end of a log, and a batch ended right before
// them, the loss cannot be noticed.
func TestLyingDisk(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	states := 40
	if *soak {
		states = 1000
	}
	sealed := int64(0)
	for _, about := range []string{".log", "MANIFEST-", ".sst"} {
		count := map[string]int{}
		for range 4 {
			files := vfs.NewCrashableMem()
			opts := sealedOptions(lyingDisk{files, about})
			opts.MemTableBytes = 64 << 10
			s, err := Open("data", opts)
			if err != nil {
				t.Fatal(err)
			}
			create(t, s)
			for n := range 60 + rng.IntN(60) {
				apply(t, s, cell(store.Put, fmt.Sprintf("row%03d", n), "q", strings.Repeat("x", 500+rng.IntN(1000))))
				appendEntries(t, s, n%5, 0, sealedEntries(n%5, n)[:60])
				if rng.IntN(20) == 0 {
					sealed += sealAll(t, s, hourEnd(0)).Sealed
				}
			}
			want := dump(t, s, store.Scan{})
			for range states / 4 {
				left := files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
				got, told, err := reading(t, take(t, left), Options{})
				switch {
				case err == nil && got == want:
					count["all"]++
				case err != nil:
					count["refused"]++
				case told != "":
					count["told"]++
				case about == ".log" && unknowable(t, take(t, left)):
					count["nothing can be known"]++
				default:
					t.Fatalf("%s: %d bytes of %d are read, and nothing is told", about, len(got), len(want))
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for _, what := range slices.Sorted(maps.Keys(count)) {
			t.Logf("%s: %s %d", about, what, count[what])
		}
	}
	if sealed == 0 {
		t.Error("no row was sealed: the test tries too little")
	}
}

// unknowable reports whether the records of the last log end with a block.
func unknowable(t *testing.T, i image) bool {
	t.Helper()
	last := ""
	for name := range i {
		if strings.HasSuffix(name, ".log") {
			last = max(last, name)
		}
	}
	_, r := logOf(t, image{last: i[last]})
	return r.End > 0 && r.End%4096 == 0
}
