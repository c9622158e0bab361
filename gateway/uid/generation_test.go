package uid

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"downpour/encoding"
	"downpour/pushdown/process/heap/heaptest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open/opentest"
)

// paused is a store that stops one caller at a chosen step and lets all others through. Each
// call is two steps: before and after it.
type paused struct {
	store.Store
	mu      sync.Mutex
	at      int // steps until the stop; 0 is none
	reached chan struct{}
	goOn    chan struct{}
}

func (*paused) Features() store.Features { return store.Features{} }

func (p *paused) step() {
	p.mu.Lock()
	p.at--
	stop := p.at == 0
	p.mu.Unlock()
	if stop {
		close(p.reached)
		<-p.goOn
	}
}

func (p *paused) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	p.step()
	defer p.step()
	return p.Store.Get(ctx, table, family, keys)
}

func (p *paused) CompareAndPut(ctx context.Context, table string, cell store.CellKey,
	expected, value []byte) (bool, error) {
	p.step()
	defer p.step()
	return p.Store.CompareAndPut(ctx, table, cell, expected, value)
}

func (p *paused) Increment(ctx context.Context, table string, cell store.CellKey, delta int64) (int64, error) {
	p.step()
	defer p.step()
	return p.Store.Increment(ctx, table, cell, delta)
}

// stop arms the store: the n-th step from now on waits until goOn is closed.
func (p *paused) stop(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.reached, p.goOn = n, make(chan struct{}), make(chan struct{})
}

// lookups are all calls that may cache a mapping.
var lookups = map[string]func(*Dictionary, encoding.UID) error{
	"resolve": func(d *Dictionary, _ encoding.UID) error {
		_, err := d.Resolve(context.Background(), encoding.UIDTagV, "old")
		return err
	},
	"resolve many": func(d *Dictionary, _ encoding.UID) error {
		_, err := d.ResolveMany(context.Background(), encoding.UIDTagV, []string{"old", "other"})
		return err
	},
	"assign": func(d *Dictionary, _ encoding.UID) error {
		_, err := Staged{d}.Assign(context.Background(), encoding.UIDTagV, "old")
		return err
	},
	"name": func(d *Dictionary, u encoding.UID) error {
		_, err := d.Name(context.Background(), encoding.UIDTagV, u)
		return err
	},
}

// deleteName deletes both mappings of a name from the table, as a deletion does.
func deleteName(t testing.TB, s store.Writer, name string, u encoding.UID) {
	t.Helper()
	q := encoding.UIDTagV.Qualifier()
	if err := s.Apply(t.Context(), table, []store.Mutation{
		{Kind: store.DeleteCell, Row: []byte(name), Family: encoding.FamilyID, Qualifier: q},
		{Kind: store.DeleteCell, Row: u, Family: encoding.FamilyName, Qualifier: q}}); err != nil {
		t.Fatal(err)
	}
}

// nameChanges are the ways in which the name "old" loses its UID. The second dictionary
// stands for another process.
var nameChanges = map[string]func(t testing.TB, s store.Store, d, other *Dictionary, u encoding.UID){
	"rename": func(t testing.TB, _ store.Store, d, _ *Dictionary, _ encoding.UID) {
		if err := d.Rename(t.Context(), encoding.UIDTagV, "old", "new"); err != nil {
			t.Error(err)
		}
	},
	"delete": func(t testing.TB, s store.Store, d, _ *Dictionary, u encoding.UID) {
		w, err := d.Withdraw(t.Context(), encoding.UIDTagV, "old")
		if err != nil {
			t.Error(err)
			return
		}
		deleteName(t, s, "old", u)
		w.End(u)
	},
	"rename elsewhere": func(t testing.TB, _ store.Store, d, other *Dictionary, _ encoding.UID) {
		if err := other.Rename(t.Context(), encoding.UIDTagV, "old", "new"); err != nil {
			t.Error(err)
		}
		d.Drop()
	},
}

// A look-up that begins before a name is changed and ends after it leaves no outdated mapping
// in the cache, at whichever step it was interrupted.
func TestDictionary_changeWithinLookup(t *testing.T) {
	opentest.Both(t, uidTables, func(t *testing.T, s store.Store) {
		for what, change := range nameChanges {
			for how, look := range lookups {
				for step := 1; ; step++ {
					if !interrupted(t, s, step, change, look,
						fmt.Sprintf("%s within %s, step %d", what, how, step)) {
						break
					}
				}
			}
		}
	})
}

// interrupted changes a name while a look-up stops at a step, and checks the cache afterwards.
// It reports whether the look-up has reached the step.
func interrupted(t *testing.T, s store.Store, step int,
	change func(testing.TB, store.Store, *Dictionary, *Dictionary, encoding.UID),
	look func(*Dictionary, encoding.UID) error, what string) bool {
	t.Helper()
	p := &paused{Store: s}
	d, other := dictionary(p), dictionary(s)
	u, err := other.Assign(t.Context(), encoding.UIDTagV, "old")
	if err != nil {
		t.Fatal(err)
	}
	p.stop(step)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = look(d, u) // it may find the old or the new mapping
	}()
	reached := true
	select {
	case <-p.reached:
	case <-done:
		reached = false
		p.stop(0)
	}
	change(t, s, d, other, u)
	close(p.goOn)
	<-done
	other.Drop()
	for _, name := range []string{"old", "new"} {
		want, wantErr := other.Resolve(t.Context(), encoding.UIDTagV, name)
		got, err := d.Resolve(t.Context(), encoding.UIDTagV, name)
		if !bytes.Equal(got, want) || isNoName(err) != isNoName(wantErr) {
			t.Errorf("%s: %s is %s, %v, the table has %s, %v", what, name, got, err, want, wantErr)
		}
	}
	want, wantErr := other.Name(t.Context(), encoding.UIDTagV, u)
	if got, err := d.Name(t.Context(), encoding.UIDTagV, u); got != want || (err == nil) != (wantErr == nil) {
		t.Errorf("%s: the name of %s is %q, %v, the table has %q, %v", what, u, got, err, want, wantErr)
	}
	for _, name := range []string{"old", "new"} {
		if u, err := other.Fresh(t.Context(), encoding.UIDTagV, name); err == nil {
			deleteName(t, s, name, u)
		}
	}
	return reached
}

// A caller that asks for a UID after the name was deleted gets a new UID, even while an earlier
// call for the same name is still running.
func TestAssign_notSharedOverChange(t *testing.T) {
	opentest.Both(t, uidTables, func(t *testing.T, s store.Store) {
		p := &paused{Store: s}
		d := dictionary(p)
		old, err := dictionary(p).Assign(t.Context(), encoding.UIDTagV, "old")
		if err != nil {
			t.Fatal(err)
		}
		p.stop(2) // behind the first Get: it has seen the old UID
		first := make(chan struct{})
		go func() {
			defer close(first)
			_, _ = d.Assign(context.Background(), encoding.UIDTagV, "old")
		}()
		<-p.reached
		nameChanges["delete"](t, p, d, nil, old)
		again, err := d.Assign(t.Context(), encoding.UIDTagV, "old")
		if err != nil || again.String() == old.String() {
			t.Errorf("%s after the deletion, %v, want another than %s", again, err, old)
		}
		close(p.goOn)
		<-first
		if now, err := d.Resolve(t.Context(), encoding.UIDTagV, "old"); err != nil || now.String() != again.String() {
			t.Errorf("%s in the end, %v, want %s", now, err, again)
		}
	})
}

// A withdrawn name can be read, but neither resolved for a write nor assigned. AwaitHolds waits
// for holds that were taken before the withdrawal, not for later ones.
func TestWithdraw(t *testing.T) {
	s := newMemory()
	d := dictionary(s)
	synctest.Test(t, func(t *testing.T) {
		if _, err := d.Assign(t.Context(), encoding.UIDMetric, "m"); err != nil {
			t.Fatal(err)
		}
		before, release := d.Hold()
		w, err := d.Withdraw(t.Context(), encoding.UIDMetric, "m")
		if err != nil {
			t.Fatal(err)
		}
		if d.Generation() == before {
			t.Error("Withdraw has begun no new generation")
		}
		later, releaseLater := d.Hold()
		if later != d.Generation() {
			t.Errorf("a later hold is of generation %d, want %d", later, d.Generation())
		}
		settled := make(chan error, 1)
		go func() { settled <- w.AwaitHolds(t.Context()) }()
		synctest.Wait()
		if len(settled) > 0 {
			t.Error("AwaitHolds returned while a row was being written")
		}
		if err := release(); err != nil {
			t.Errorf("release: got %v, want no error", err)
		}
		if err := <-settled; err != nil {
			t.Errorf("AwaitHolds: %v", err)
		}
		_ = releaseLater()

		var busy *BusyError
		if _, err := (Staged{d}).Resolve(t.Context(), encoding.UIDMetric, "m"); !errors.As(err, &busy) {
			t.Errorf("resolved to write: got %v, want a *BusyError", err)
		}
		if _, err := (Staged{d}).Assign(t.Context(), encoding.UIDMetric, "m"); !errors.As(err, &busy) {
			t.Errorf("assigned: got %v, want a *BusyError", err)
		}
		if _, err := (Staged{d}).Assign(t.Context(), encoding.UIDTagK, "m"); err != nil {
			t.Errorf("the same name of another kind: got %v, want a UID", err)
		}
		if _, err := d.Resolve(t.Context(), encoding.UIDMetric, "m"); err != nil {
			t.Errorf("resolved to read: got %v, want a UID", err)
		}
		if err := busy.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), `metrics "m" is being`) {
			t.Errorf("Wait gave up after %s with %v, want that the name is busy", maxBusyWait, err)
		}
		assigned := make(chan error, 1)
		go func() {
			_, err := d.Assign(t.Context(), encoding.UIDMetric, "m")
			assigned <- err
		}()
		synctest.Wait()
		w.End()
		if err := <-assigned; err != nil {
			t.Errorf("the call that waited for the end: got %v, want a UID", err)
		}
		if err := busy.Wait(t.Context()); err != nil {
			t.Errorf("Wait after the end: got %v, want no error", err)
		}
	})
}

// Only one change is made at a time, and a caller that waits for its turn can give up.
func TestWithdraw_oneAtATime(t *testing.T) {
	d := dictionary(newMemory())
	w, err := d.Withdraw(t.Context(), encoding.UIDMetric, "m")
	if err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := d.Withdraw(gone, encoding.UIDTagK, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("a second change: got %v, want that it waits until its context ends", err)
	}
	w.End()
	if w, err = d.Withdraw(t.Context(), encoding.UIDTagK, "k"); err != nil {
		t.Fatal(err)
	}
	w.End()
	// An AwaitHolds that is given up leaves nothing behind.
	_, release := d.Hold()
	if w, err = d.Withdraw(t.Context(), encoding.UIDTagK, "k"); err != nil {
		t.Fatal(err)
	}
	if err := w.AwaitHolds(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("AwaitHolds of a caller that has left: got %v, want that its context has ended", err)
	}
	w.End()
	_ = release()
	if n := len(d.generations.held) + len(d.generations.withdrawn); n != 0 {
		t.Errorf("%d holds and withdrawn names are left, want none", n)
	}
}

// Check drops the mappings that another process has changed from the cache, and no others.
func TestCheck(t *testing.T) {
	opentest.Both(t, uidTables, func(t *testing.T, s store.Store) {
		ours, theirs := dictionary(s), dictionary(s)
		var uids []encoding.UID
		for i := range 2*namesPerRead + 10 {
			u, err := (Staged{theirs}).Assign(t.Context(), encoding.UIDTagV, fmt.Sprint("v", i))
			if err != nil {
				t.Fatal(err)
			}
			uids = append(uids, u)
		}
		if _, err := theirs.Assign(t.Context(), encoding.UIDMetric, "v0"); err != nil {
			t.Fatal(err)
		}
		all := make([]string, len(uids))
		for i := range all {
			all[i] = fmt.Sprint("v", i)
		}
		if _, err := ours.ResolveMany(t.Context(), encoding.UIDTagV, all); err != nil {
			t.Fatal(err)
		}
		if _, err := ours.Resolve(t.Context(), encoding.UIDMetric, "v0"); err != nil {
			t.Fatal(err)
		}
		before := ours.Generation()
		if err := ours.Check(t.Context()); err != nil || ours.Generation() != before {
			t.Errorf("%v, generation %d was %d, want the same: nothing has changed", err, ours.Generation(),
				before)
		}
		if err := theirs.Rename(t.Context(), encoding.UIDTagV, "v3", "w3"); err != nil {
			t.Fatal(err)
		}
		deleteName(t, s, "v1005", uids[1005])
		if _, err := theirs.Name(t.Context(), encoding.UIDTagV, uids[1005]); err != nil {
			t.Errorf("the other dictionary does not have %s in its cache any more", uids[1005])
		}
		if err := ours.Check(t.Context()); err != nil || ours.Generation() == before {
			t.Errorf("%v, generation %d, want a newer one after the changes", err, ours.Generation())
		}
		for _, name := range []string{"v3", "v1005"} {
			if u, err := ours.Resolve(t.Context(), encoding.UIDTagV, name); !isNoName(err) {
				t.Errorf("%s is still %s, %v", name, u, err)
			}
		}
		if name, err := ours.Name(t.Context(), encoding.UIDTagV, uids[3]); err != nil || name != "w3" {
			t.Errorf("%s is %q, %v, want w3", uids[3], name, err)
		}
		if name, err := ours.Name(t.Context(), encoding.UIDTagV, uids[1005]); err == nil {
			t.Errorf("%s is still %q", uids[1005], name)
		}
		if n := ours.forward.EstimatedSize(); n != len(uids)-2+1 {
			t.Errorf("%d names are cached, want %d", n, len(uids)-2+1)
		}
	})
}

// reading is a store that counts reads, and fails them with fail if that is set.
type reading struct {
	*storeInMemory
	mu   sync.Mutex
	gets int
	fail error
}

func (*reading) Features() store.Features { return store.Features{} }

func (r *reading) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gets++; r.fail != nil {
		return nil, r.fail
	}
	return r.storeInMemory.Get(ctx, table, family, keys)
}

// looks returns the number of reads so far.
func (r *reading) looks() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gets
}

// A hold that lasts longer than longWrite while another process changes names ends in ErrLate:
// that process may have looked for rows before these were written.
func TestHold_late(t *testing.T) {
	s := newMemory()
	synctest.Test(t, func(t *testing.T) {
		d := dictionary(s)
		f := func(took time.Duration, changed bool, want error) {
			t.Helper()
			_, release := d.Hold()
			time.Sleep(took)
			if changed {
				d.dropChangedElsewhere(encoding.UIDTagV, []string{"v"}, nil)
			} else {
				d.Drop() // a change by this process, which waits for its holds
			}
			if err := release(); !errors.Is(err, want) {
				t.Errorf("after %s, changed elsewhere %t: %v, want %v", took, changed, err, want)
			}
		}
		f(longWrite-time.Millisecond, true, nil)
		f(longWrite+time.Millisecond, true, ErrLate)
		f(time.Hour, false, nil)
		_, release := d.Hold()
		time.Sleep(time.Hour)
		if err := release(); err != nil {
			t.Errorf("a hold taken after the changes: got %v, want no error", err)
		}
	})
}

// A rename by another process changes one mapping after the other. A look-up that reads the
// table in between reads it again, and does not count a conflict.
func TestResolve_withinRenameElsewhere(t *testing.T) {
	s := newMemory()
	d := dictionary(s)
	u, err := dictionary(s).Assign(t.Context(), encoding.UIDTagV, "old")
	if err != nil {
		t.Fatal(err)
	}
	m := encoding.UIDMapping{Kind: encoding.UIDTagV, Name: "new", UID: u}
	synctest.Test(t, func(t *testing.T) {
		change := func(c encoding.Cell, err error) {
			if err != nil {
				t.Fatal(err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.set(store.CellKey{Row: c.Row, Family: c.Family, Qualifier: c.Qualifier}, c.Value)
		}
		change(m.Reverse())
		found := make(chan error, 1)
		go func() {
			_, err := d.Resolve(t.Context(), encoding.UIDTagV, "old")
			found <- err
		}()
		synctest.Wait()
		change(m.Forward())
		s.mu.Lock()
		delete(s.rows, "old")
		s.mu.Unlock()
		if err := <-found; !isNoName(err) || d.Stats().Conflicts != 0 {
			t.Errorf("%v, %d conflicts, want that there is no such name", err, d.Stats().Conflicts)
		}
	})
}

// A name longer than MaxName gets no UID and raises no counter, but is found if it has a UID.
// No name can be longer than the longest row key.
func TestAssign_longNames(t *testing.T) {
	opentest.Both(t, uidTables, func(t *testing.T, s store.Store) {
		d := New(Config{Store: s, Table: table, Schema: encoding.DefaultSchema(), MaxName: 100})
		long := strings.Repeat("é", 101) // 101 bytes in the table, which holds ISO-8859-1
		put := func(name string, u encoding.UID) {
			row, err := encoding.AppendName(nil, name)
			if err != nil {
				t.Fatal(err)
			}
			q := encoding.UIDTagV.Qualifier()
			if err := s.Apply(t.Context(), table,
				[]store.Mutation{{Row: row, Family: "id", Qualifier: q, Value: u},
					{Row: u, Family: "name", Qualifier: q, Value: row}}); err != nil {
				t.Fatal(err)
			}
		}
		put(long, encoding.UID{0, 9, 9})
		var tooLong *NameTooLongError
		if _, err := d.Assign(t.Context(), encoding.UIDTagV,
			long[2:]+"xx"); !errors.As(err, &tooLong) || tooLong.Got != 102 || tooLong.Limit != 100 {
			t.Errorf("102 bytes: %v, want that at most 100 are allowed", err)
		}
		if u, err := d.Assign(t.Context(), encoding.UIDTagV, long); err != nil || u.String() != "000909" {
			t.Errorf("a long name that has a UID: got %s, %v, want 000909", u, err)
		}
		if u, err := d.Assign(t.Context(), encoding.UIDTagV, long[2:]); err != nil || u.String() != "000001" {
			t.Errorf("100 bytes: %s, %v, want the first UID", u, err)
		}
		if err := d.Rename(t.Context(), encoding.UIDTagV, long[2:], long[2:]+"x"); !errors.As(err, &tooLong) {
			t.Errorf("renamed to 101 bytes: got %v, want that it is too long", err)
		}
		if err := d.Rename(t.Context(), encoding.UIDTagV, long, "short"); err != nil {
			t.Errorf("renamed from 101 bytes: %v", err)
		}
		if _, err := d.Resolve(t.Context(), encoding.UIDTagV, strings.Repeat("x", MostName+1)); !isNoName(err) {
			t.Errorf("a name longer than a row key: got %v, want that there is no such name", err)
		}
		if u, err := dictionary(s).Assign(t.Context(), encoding.UIDTagV, strings.Repeat("x", MostName)); err != nil {
			t.Errorf("a name as long as a row key: got %s, %v, want a UID", u, err)
		}
	})
}

// The cache stays within its bytes, whether names are long or many, or substrings that would
// keep a longer string in memory.
func TestDictionary_bytes(t *testing.T) {
	const bound = 4 << 20
	zeros := strings.Repeat("0", MostName-20)
	for what, c := range map[string]struct {
		names int
		name  func(i int) string
	}{
		"long": {1000, func(i int) string { return zeros + fmt.Sprintf("%020d", i) }},
		"many": {50_000, func(i int) string { return fmt.Sprint(i) }},
		"part": {1000, func(i int) string { return (zeros + fmt.Sprintf("%020d", i))[len(zeros):] }},
	} {
		d := New(Config{Bytes: bound})
		before := heaptest.InUse()
		for i := range c.names {
			u, _ := encoding.AppendUID(nil, uint64(i+1), 3)
			d.cacheIfCurrent(0, encoding.UIDTagV, map[string]encoding.UID{c.name(i): u})
		}
		if grown := heaptest.InUse() - before; grown > bound*5/4 {
			t.Errorf("%s: %d bytes are held, want %d at most", what, grown, bound*5/4)
		}
		if n := d.forward.EstimatedSize(); n == 0 {
			t.Errorf("%s: nothing is cached", what)
		}
		runtime.KeepAlive(d)
	}
}

// Reads that began before and after a rename by another process may both be cached: the later one shows it.
func TestCacheNames_replaced(t *testing.T) {
	d := dictionary(newMemory())
	for i, want := range []bool{false, false, true} {
		read := map[string]string{"\x00\x00\x01": []string{"a", "a", "b"}[i]}
		d.cacheNamesIfCurrent(d.Generation(), encoding.UIDTagV, read)
		if got := d.replaced.Load(); got != want {
			t.Errorf("read %d: a mapping was replaced: %v, want %v", i+1, got, want)
		}
	}
}
