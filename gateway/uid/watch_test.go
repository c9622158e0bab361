package uid

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Watch finds changes of a shared table: within seconds if the other process has raised the
// counter of changes, as shared dictionaries do, and within minutes if not. A look at a table
// without changes costs one read.
func TestWatch(t *testing.T) {
	s := &reading{storeInMemory: newMemory()}
	var changes atomic.Int64
	shared := func() *Dictionary {
		return New(Config{
			Store:    s,
			Table:    table,
			Schema:   encoding.DefaultSchema(),
			Shared:   true,
			OnChange: func() { changes.Add(1) },
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := shared(), shared()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go ours.Watch(ctx)
		old, err := theirs.Assign(t.Context(), encoding.UIDTagV, "old")
		if err != nil {
			t.Fatal(err)
		}
		knows := func(within time.Duration, name string, want encoding.UID) {
			t.Helper()
			time.Sleep(within)
			synctest.Wait()
			if u, err := ours.Resolve(t.Context(), encoding.UIDTagV, name); string(u) != string(want) ||
				err != nil && want != nil {
				t.Errorf("after %s %s is %s, %v, want %s", within, name, u, err, want)
			}
		}
		knows(2*time.Second, "old", old)
		if err := theirs.Rename(t.Context(), encoding.UIDTagV, "old", "new"); err != nil {
			t.Fatal(err)
		}
		if n := changes.Load(); n != 1 {
			t.Errorf("OnChange was called %d times at the first look, want once", n)
		}
		knows(2*pollEvery, "old", nil)
		knows(0, "new", old)
		if n := changes.Load(); n != 2 {
			t.Errorf("OnChange was called %d times for the first look and one change, want twice", n)
		}

		time.Sleep(time.Second) // simulated by synctest: one more look follows the last change
		synctest.Wait()
		before := s.looks()
		time.Sleep(100 * pollEvery)
		synctest.Wait()
		if n := s.looks() - before; n > 101 {
			t.Errorf("%d reads in 100 looks, want 101 at most", n)
		}

		untold := dictionary(s)
		if err := untold.Rename(t.Context(), encoding.UIDTagV, "new", "newer"); err != nil {
			t.Fatal(err)
		}
		knows(checkEvery+pollEvery, "new", nil)

		// While the table cannot be read, the cache is kept. Once it can be read again, all
		// changes are found.
		knows(0, "newer", old)
		s.mu.Lock()
		s.fail = store.ErrUnavailable
		s.mu.Unlock()
		knows(time.Hour, "newer", old)
		s.mu.Lock()
		s.fail = nil
		s.mu.Unlock()
		if err := theirs.Rename(t.Context(), encoding.UIDTagV, "newer", "newest"); err != nil {
			t.Fatal(err)
		}
		knows(2*pollEvery, "newer", nil)
	})
}

// A check compares names that are known by their UIDs alone, as answers need them: one that another
// process has changed is read again, and begins a generation.
func TestCheck_namesOfUIDs(t *testing.T) {
	s := newMemory()
	ours, theirs := dictionary(s), dictionary(s)
	u, err := theirs.Assign(t.Context(), encoding.UIDTagV, "old")
	if err != nil {
		t.Fatal(err)
	}
	named := func(want string) {
		t.Helper()
		if got, err := ours.Name(t.Context(), encoding.UIDTagV, u); got != want || err != nil {
			t.Errorf("the UID's name is %q, %v, want %q", got, err, want)
		}
	}
	check := func(begins bool) {
		t.Helper()
		before := ours.Generation()
		if err := ours.Check(t.Context()); err != nil || (ours.Generation() != before) != begins {
			t.Errorf("checked: %v, a generation has begun: %t, want %t", err, ours.Generation() != before, begins)
		}
	}
	named("old")
	check(false)
	if err := theirs.Rename(t.Context(), encoding.UIDTagV, "old", "new"); err != nil {
		t.Fatal(err)
	}
	named("old")
	check(true)
	named("new")
	check(false)
}

// A check that cannot read the table fails, however many mappings it reads at a time: Watch then checks
// again.
func TestCheck_fails(t *testing.T) {
	for _, cached := range []int{1, namesPerRead} {
		s := &reading{storeInMemory: newMemory()}
		byName, byUID := dictionary(s), dictionary(s)
		for i := range cached {
			name := fmt.Sprint("v", i)
			u := encoding.UID{0, byte(i >> 8), byte(i)}
			put(t, s, encoding.UIDMapping{Kind: encoding.UIDTagV, Name: name, UID: u}, true, true)
			mustResolve(t, byName, name)
			if _, err := byUID.Name(t.Context(), encoding.UIDTagV, u); err != nil {
				t.Fatal(err)
			}
		}
		s.fail = store.ErrUnavailable
		for what, d := range map[string]*Dictionary{"names": byName, "UIDs": byUID} {
			if err := d.Check(t.Context()); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%d %s: got %v, want the store's error", cached, what, err)
			}
		}
	}
}

// Of looks that fail, one after another, the first is logged.
func TestWatch_fails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &reading{storeInMemory: newMemory()}
		var log bytes.Buffer
		d := New(Config{
			Store: s, Table: table, Schema: encoding.DefaultSchema(), Shared: true,
			Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		go d.Watch(t.Context())
		for range 2 {
			for _, err := range []error{store.ErrUnavailable, nil} {
				s.mu.Lock()
				s.fail = err
				s.mu.Unlock()
				time.Sleep(3 * pollEvery)
				synctest.Wait()
			}
		}
		if got := strings.Count(log.String(), "cannot see changes of names"); got != 2 {
			t.Errorf("%d warnings, want one for each of two outages:\n%s", got, &log)
		}
	})
}

// resolveNew resolves the name that old gets.
func resolveNew(t *testing.T, ours *Dictionary) { mustResolve(t, ours, "new") }

// A change that another process announces begins a generation also if the cache has nothing of
// it any more: series of puts and live queries may still have the old name. The first look
// begins none.
func TestWatch_notCached(t *testing.T) {
	for what, c := range map[string]struct {
		bytes int64
		// lose makes the cache lose the mapping of old.
		lose func(t *testing.T, ours *Dictionary)
		// told is whether the other process announces its change; within is when it is found.
		told   bool
		within time.Duration
	}{
		"evicted":               {bytes: 8 << 10, lose: crowdOut, told: true, within: 2 * pollEvery},
		"resolved anew":         {lose: resolveNew, told: true, within: 2 * pollEvery},
		"evicted, untold":       {bytes: 8 << 10, lose: crowdOut, within: renewEvery + checkEvery + pollEvery},
		"resolved anew, untold": {lose: resolveNew, within: checkEvery + pollEvery},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newMemory()
			shared := func(bytes int64) *Dictionary {
				return New(Config{Store: s, Table: table, Schema: encoding.DefaultSchema(), Shared: true, Bytes: bytes})
			}
			ours, theirs := shared(c.bytes), shared(0)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go ours.Watch(ctx)
			if _, err := theirs.Assign(t.Context(), encoding.UIDTagV, "old"); err != nil {
				t.Fatal(err)
			}
			for i := range crowd {
				if _, err := theirs.Assign(t.Context(), encoding.UIDTagV, fmt.Sprint("v", i)); err != nil {
					t.Fatal(err)
				}
			}
			mustResolve(t, ours, "old")
			if c.bytes > 0 { // for mappings that are lost a generation begins only now and then
				c.lose(t, ours)
				time.Sleep(checkEvery + pollEvery)
				synctest.Wait()
				if ours.Generation() == 0 {
					t.Errorf("%s: no generation has begun for mappings that are lost", what)
				}
				mustResolve(t, ours, "old")
			}
			before := ours.Generation()
			time.Sleep(2 * checkEvery)
			synctest.Wait()
			if ours.Generation() != before {
				t.Errorf("%s: a generation has begun, and nothing has changed", what)
			}

			if c.bytes > 0 {
				c.lose(t, ours)
			}
			by := theirs
			if !c.told {
				by = dictionary(s)
			}
			if err := by.Rename(t.Context(), encoding.UIDTagV, "old", "new"); err != nil {
				t.Fatal(err)
			}
			if c.bytes == 0 {
				c.lose(t, ours)
			}
			time.Sleep(c.within)
			synctest.Wait()
			if ours.Generation() == before {
				t.Errorf("%s: no generation has begun within %v", what, c.within)
			}

			// After that the calm comes back.
			before = ours.Generation()
			time.Sleep(2 * checkEvery)
			synctest.Wait()
			if ours.Generation() != before {
				t.Errorf("%s: generation %d was %d without a change", what, ours.Generation(), before)
			}
		})
	}
}

// A generation begins for an announced change also while the check of the cache takes long: the
// process that deletes a name does not wait for it. Changes of names that this one has never held
// begin none, however many there are.
func TestWatch_announced(t *testing.T) {
	for what, c := range map[string]struct {
		bytes int64
		want  bool
	}{"some names have left the cache": {8 << 10, true}, "all are cached": {0, false}} {
		synctest.Test(t, func(t *testing.T) {
			s := &stuck{storeInMemory: newMemory()}
			ours := New(Config{Store: s, Table: table, Schema: encoding.DefaultSchema(), Shared: true, Bytes: c.bytes})
			theirs := New(Config{Store: s.storeInMemory, Table: table, Schema: encoding.DefaultSchema(), Shared: true})
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go ours.Watch(ctx)
			for i := range crowd {
				if _, err := theirs.Assign(t.Context(), encoding.UIDTagV, fmt.Sprint("v", i)); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(2 * pollEvery)
			for i := range crowd - 1 {
				mustResolve(t, ours, fmt.Sprint("v", i))
			}
			synctest.Wait() // for the cache's own work
			before := ours.Generation()

			s.isStuck.Store(c.want)
			if err := theirs.Rename(t.Context(), encoding.UIDTagV, fmt.Sprint("v", crowd-1), "other"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * pollEvery)
			synctest.Wait()
			if got := ours.Generation() != before; got != c.want {
				t.Errorf("%s: a generation has begun: %v, want %v", what, got, c.want)
			}
		})
	}
}

// stuck is a store whose reads of names never end while it is stuck.
type stuck struct {
	*storeInMemory
	isStuck atomic.Bool
}

func (*stuck) Features() store.Features { return store.Features{} }

func (s *stuck) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	if s.isStuck.Load() && !bytes.Equal(keys[0], encoding.CounterRow) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.storeInMemory.Get(ctx, table, family, keys)
}

// crowd are more names than a small cache holds.
const crowd = 200

// crowdOut resolves other names until the small cache of a dictionary has lost a name.
func crowdOut(t *testing.T, ours *Dictionary) {
	t.Helper()
	for i := range crowd {
		mustResolve(t, ours, fmt.Sprint("v", i))
	}
	synctest.Wait() // for the cache's own work
	if _, ok := ours.forward.GetIfPresent(nameKey{encoding.UIDTagV, "old"}); ok {
		for _, maximum := range []uint64{0, ours.forward.GetMaximum()} {
			ours.forward.SetMaximum(maximum)
			ours.reverse.SetMaximum(maximum)
			ours.forward.CleanUp()
			ours.reverse.CleanUp()
		}
	}
	if _, ok := ours.forward.GetIfPresent(nameKey{encoding.UIDTagV, "old"}); ok {
		t.Fatal("the name is still cached")
	}
}

func mustResolve(t *testing.T, d *Dictionary, name string) {
	t.Helper()
	if _, err := d.Resolve(t.Context(), encoding.UIDTagV, name); err != nil {
		t.Fatal(err)
	}
}
