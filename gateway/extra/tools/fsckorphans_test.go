package tools_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/extra/tools"
	"downpour/gateway/extra/tools/fsck/damage"
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble"
)

// readers is a store that sees how many of its scanners of rows work at a time.
type readers struct {
	tools.Store
	mu            sync.Mutex
	reading, most int
	counting      int           // scans of keys alone
	together      chan struct{} // closed when so many of these as are wanted are open; nil to wait for none
	wanted        int
	refuse        int   // the number of the scan of keys that fails, 0 for none
	err           error // with which it fails
}

func (*readers) Features() store.Features { return store.Features{} }

func (r *readers) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	inner, err := r.Store.Scan(ctx, s)
	// Others are those of names and of the check of the layout.
	if err != nil || s.Table != "tsdb" || s.BlockBytes != 1<<20 {
		return inner, err
	}
	out := &reader{Scanner: inner, of: r}
	if !s.KeysOnly {
		return out, nil
	}

	r.mu.Lock()
	r.counting++
	out.err = nil
	if r.counting == r.refuse {
		out.err = r.err
	}
	if r.counting == r.wanted {
		close(r.together)
	}
	together := r.together
	r.mu.Unlock()
	if together != nil {
		select {
		case <-together:
		case <-time.After(time.Minute):
			return nil, fmt.Errorf("after a minute there are %d scans at a time, want %d", r.counting, r.wanted)
		}
	}
	return out, nil
}

// reader is a scanner of readers.
type reader struct {
	store.Scanner
	of  *readers
	err error
}

func (s *reader) Next() ([]store.Row, error) {
	s.of.mu.Lock()
	s.of.reading++
	s.of.most = max(s.of.most, s.of.reading)
	s.of.mu.Unlock()
	defer func() {
		s.of.mu.Lock()
		defer s.of.mu.Unlock()
		s.of.reading--
	}()
	if s.err != nil {
		return nil, s.err
	}
	return s.Scanner.Next()
}

// salted lays rows of many salt buckets, some of them of orphans, and returns how many.
func salted(t *testing.T, rows, orphans int) *place {
	t.Helper()
	files := vfs.NewMem()
	p := newPlace(t, "pebble:test", func() (tools.Store, error) { return pebble.Open("db", pebble.Options{FS: files}) },
		func(c *gateway.Config) { c.SaltWidth, c.SaltBuckets = 1, 16 })
	p.use(func(st tools.Store) {
		cfg := p.named(st)
		var all []damage.Row
		for i := range rows {
			of := cfg.Series[i%2]
			if i < orphans {
				tags := cfg.Schema.AppendTags(nil,
					[]encoding.TagPair{{K: encoding.UID{0, 0, 1}, V: encoding.UID{0, 9, byte(i)}}})
				of = damage.Series{Metric: cfg.Series[0].Metric, Tags: tags}
			}
			all = append(all, broken(of, cfg.Schema, 1356998400+uint32(i)*encoding.RowSeconds))
		}
		p.lay(st, all)
	})
	return p
}

// Orphans are counted in as many parts at a time as are checked, all of them exactly once, and no more parts are
// read at a time than were allowed.
func TestFsck_countsTogether(t *testing.T) {
	for _, threads := range []int{1, 2, 4} {
		p := salted(t, 120, 30)
		inner := p.open
		watched := &readers{wanted: threads, together: make(chan struct{})}
		p.open = func() (tools.Store, error) {
			var err error
			watched.Store, err = inner()
			return watched, err
		}
		args := []string{"--full-scan", "--fix", "--delete-orphans", "--threads", fmt.Sprint(threads)}
		err := p.tool("", nil, "fsck", args...)
		if err == nil ||
			!strings.Contains(err.Error(), "no orphan is deleted: 30 of 120 rows of table tsdb have a UID") {
			t.Errorf("%d threads: got %v, want 30 of 120 rows", threads, err)
		}
		if watched.counting != 16 || watched.most > threads {
			t.Errorf("%d threads: %d parts are counted, %d read at a time, want 16 and at most %d",
				threads, watched.counting, watched.most, threads)
		}

		watched.wanted, watched.together = 0, nil
		err = p.tool("", nil, "fsck", append(args, "--yes-delete-orphans", "30")...)
		if said(err) != "120 errors found, 30 of them repaired" {
			t.Errorf("%d threads: with leave for 30: %v", threads, err)
		}
		p.open = inner
		p.use(func(st tools.Store) {
			if n := len(p.rowCells(st)); n != 2*90 {
				t.Errorf("%d threads: %d cells, want %d", threads, n, 2*90)
			}
		})
	}
}

// If one part cannot be counted, whichever, no orphan is deleted, however many may be.
func TestFsck_countFails(t *testing.T) {
	for nth := 1; nth <= 16; nth += 5 {
		p := salted(t, 60, 5)
		inner := p.open
		broken := errors.New("the region is gone")
		p.open = func() (tools.Store, error) {
			st, err := inner()
			return &readers{Store: st, refuse: nth, err: broken}, err
		}
		err := p.tool("", nil, "fsck", "--full-scan", "--fix", "--delete-orphans", "--threads", "4",
			"--yes-delete-orphans", "1000")
		if err == nil ||
			!strings.Contains(err.Error(), "cannot count orphans before the first is deleted: "+broken.Error()) {
			t.Errorf("part %d fails: %v", nth, err)
		}
		p.open = inner
		p.use(func(st tools.Store) {
			if n := len(p.rowCells(st)); n != 2*60 {
				t.Errorf("part %d fails: %d cells are left, want %d", nth, n, 2*60)
			}
		})
	}
}
