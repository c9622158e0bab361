package pebble

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"downpour/encoding/seedtest"
	"downpour/pushdown/store"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// tableStore returns a store after Close, and the names of its two table files: one with some 30 blocks of
// rows, one with the catalogue.
func tableStore(t *testing.T) (i image, table, catalogue string) {
	t.Helper()
	files := vfs.NewMem()
	s, err := Open("data", Options{FS: files, IdleFlush: -1, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	create(t, s)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range rng.Perm(tableRows) {
		value := make([]byte, 1000)
		for i := range value {
			value[i] = byte(rng.Uint32()) // so that it does not compress
		}
		apply(t, s, cell(store.Put, fmt.Sprintf("row%04d", n), "q", string(value)))
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Compact(t.Context(), []byte{0}, []byte{0xff, 0}, false); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	i = take(t, files)
	var names []string
	for name := range i {
		if strings.HasSuffix(name, ".sst") {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(len(i[b]), len(i[a])) })
	if len(names) != 2 {
		t.Fatalf("table files %v, want one of rows and one of the catalogue", names)
	}
	return i, names[0], names[1]
}

const tableRows = 1000

// readRow reads one row, true if it is there.
func readRow(s *Store, n int) (bool, error) {
	key := fmt.Sprintf("row%04d", n)
	for rows, err := range store.Blocks(context.Background(),
		s, store.Scan{Table: "tsdb", Start: []byte(key), Stop: []byte(key + "\x00")}) {
		if err != nil {
			return false, err
		}
		return len(rows) == 1, nil
	}
	return false, nil
}

// If one block of a table file is damaged, the reads that meet it fail and name the file, and all
// others answer.
func TestDamagedTable(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	i, table, _ := tableStore(t)
	for range 5 {
		data := bytes.Clone(i[table])
		// Not at the ends, which hold the catalogue, and indexes and properties.
		data[len(data)/10+rng.IntN(len(data)*8/10)] ^= 1 << rng.IntN(8)
		s, err := Open("data", Options{FS: i.with(table, data).files(t), Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		failed, first, last := 0, 0, 0
		for n := range tableRows {
			there, err := readRow(s, n)
			switch {
			case err == nil && !there:
				t.Fatalf("row %d is not there", n)
			case err == nil:
			case !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), table):
				t.Fatalf("row %d: %v, want it damaged in %s", n, err, table)
			default:
				if failed == 0 {
					first = n
				}
				failed, last = failed+1, n
			}
		}
		if failed == 0 || failed > 80 || last-first+1 != failed {
			t.Errorf("rows %d to %d cannot be read, %d of %d: want those of one block", first, last, failed, tableRows)
		}
		if _, err := s.Get(t.Context(), "tsdb", "t",
			[][]byte{fmt.Appendf(nil, "row%04d", first)}); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("get of row %d: %v, want it damaged", first, err)
		}
		// One of the block is not taken for absent, wherever it is among others.
		var cells []store.CellKey
		for n := last % 50; n < tableRows; n += 50 {
			row := fmt.Appendf(nil, "row%04d", n)
			cells = append(cells, store.CellKey{Row: row, Family: "t", Qualifier: []byte("q")})
		}
		for ; len(cells) > 0 && string(cells[0].Row) <= fmt.Sprintf("row%04d", last); cells = cells[1:] {
			if _, err := s.PutAbsent(t.Context(), "tsdb", cells,
				make([][]byte, len(cells))); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("put of row %d as one of %d that are absent: %v, want it damaged", last, len(cells), err)
			}
		}
		if _, err := all(s); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("a scan of all: %v, want it damaged", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// If the file is damaged that holds the catalogue, which lists the tables, their rows are read all the
// same, and tables need not be created again.
func TestDamagedTable_catalogue(t *testing.T) {
	i, _, catalogue := tableStore(t)
	data := bytes.Clone(i[catalogue])
	data[10] ^= 1
	var log bytes.Buffer
	s, err := Open("data", Options{
		FS: i.with(catalogue, data).files(t), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, n := range []int{0, tableRows - 1} {
		if there, err := readRow(s, n); err != nil || !there {
			t.Errorf("row %d is there: %t, %v, want it there", n, there, err)
		}
	}
	if err := s.CreateTable(t.Context(), store.TableSpec{
		Name:     "tsdb",
		Families: []store.FamilySpec{{Name: "t"}},
	}); !errors.Is(err, store.ErrTableExists) {
		t.Errorf("create: %v, want that it exists", err)
	}
	if said := log.String(); !strings.Contains(said, catalogue) ||
		!strings.Contains(said, "every table is taken to be there") {
		t.Errorf("the log does not name the damaged file, or not say what that means: %s", &log)
	}
}

// If the catalogue cannot be read for another reason, the store does not open.
func TestOpen_unreadableCatalogue(t *testing.T) {
	i, _, catalogue := tableStore(t)
	broken := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && strings.HasSuffix(op.Path, catalogue) {
			return errorfs.ErrInjected
		}
		return nil
	})
	s, err := Open("data", Options{FS: errorfs.Wrap(i.files(t), broken), IdleFlush: -1, Logger: quiet()})
	if err == nil {
		err = errors.Join(errors.New("it has opened"), s.Close())
	}
	if !errors.Is(err, errorfs.ErrInjected) {
		t.Errorf("got %v, want %v", err, errorfs.ErrInjected)
	}
}

// Whatever part of a table file is damaged: pebble, which tries to read it again and again in the
// background, is slowed down, and few lines are logged. The test runs in simulated time.
func TestDamagedTable_background(t *testing.T) {
	i, table, _ := tableStore(t)
	size := len(i[table])
	for what, at := range map[string]int{
		"data":                size / 2,
		"footer":              size - 5,
		"properties, indexes": size - 300,
		"cut":                 -1,
	} {
		synctest.Test(t, func(t *testing.T) {
			data := bytes.Clone(i[table])
			if at < 0 {
				data = data[:size/2]
			} else {
				data[at] ^= 1
			}
			var log bytes.Buffer
			s, err := Open("data", Options{
				FS:        i.with(table, data).files(t),
				Logger:    slog.New(slog.NewTextHandler(&log, nil)),
				IdleFlush: -1,
			})
			if err != nil {
				t.Fatal(err)
			}
			for n := range 10 {
				apply(t, s, cell(store.Put, fmt.Sprintf("row%04d", n*100), "q", "new"))
				if err := s.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			met := s.trouble.damaged.of("data/" + table)
			if lines := strings.Count(log.String(), "\n"); lines > 10 ||
				!strings.Contains(log.String(), table+", with keys from") {
				t.Errorf("%s: %d lines in 100 s, want at most 10, and one that names the table: %s", what, lines, &log)
			}
			if met.n > 300 {
				t.Errorf("%s: the table was read %d times in 100 s, want at most 300", what, met.n)
			}
			t.Logf("%s: %d lines, met %d times", what, strings.Count(log.String(), "\n"), met.n)
		})
	}
}
