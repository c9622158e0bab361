package uid

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// stumbling is a store that counts its calls and fails one of them.
type stumbling struct {
	*storeInMemory
	failsAt, calls int
}

var errDenied = errors.New("denied")

func (s *stumbling) step() error {
	if s.calls++; s.calls == s.failsAt {
		return errDenied
	}
	return nil
}

// Features has the operation for many cells, so that these are one call.
func (s *stumbling) Features() store.Features {
	return store.Features{PutAbsent: func(ctx context.Context, table string, cells []store.CellKey,
		values [][]byte) ([]bool, error) {
		if err := s.step(); err != nil {
			return nil, err
		}
		return store.PutEachAbsent(ctx, s.storeInMemory, table, cells, values)
	}}
}

func (s *stumbling) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	if err := s.step(); err != nil {
		return nil, err
	}
	return s.storeInMemory.Get(ctx, table, family, keys)
}

func (s *stumbling) Increment(ctx context.Context, table string, c store.CellKey, delta int64) (int64, error) {
	if err := s.step(); err != nil {
		return 0, err
	}
	return s.storeInMemory.Increment(ctx, table, c, delta)
}

func (s *stumbling) CompareAndPut(ctx context.Context, table string, c store.CellKey,
	expected, value []byte) (bool, error) {
	if err := s.step(); err != nil {
		return false, err
	}
	return s.storeInMemory.CompareAndPut(ctx, table, c, expected, value)
}

func (s *stumbling) Apply(ctx context.Context, table string, mutations []store.Mutation) error {
	if err := s.step(); err != nil {
		return err
	}
	return s.storeInMemory.Apply(ctx, table, mutations)
}

// Whichever of the four steps of an assignment the store refuses, there is no UID, no further step, and the number
// that was counted is lost. The next assignment succeeds.
func TestAssign_refusedSteps(t *testing.T) {
	s := &stumbling{storeInMemory: newMemory()}
	if u, err := dictionary(s).Assign(t.Context(), encoding.UIDTagV, "ab日"); err == nil || s.calls != 0 {
		t.Errorf("a name that cannot be stored: %s, %v after %d steps, want an error and none", u, err, s.calls)
	}
	for at, number := range []uint64{1, 1, 2, 2} {
		s := &stumbling{storeInMemory: newMemory(), failsAt: at + 1}
		d := dictionary(s)
		u, err := d.Assign(t.Context(), encoding.UIDTagV, "a")
		if leaked := int64(number - 1); u != nil || !errors.Is(err, errDenied) || s.calls != at+1 ||
			d.Stats() != (Stats{Leaked: leaked}) {
			t.Errorf("step %d is refused: %s, %v after %d steps, %+v", at+1, u, err, s.calls, d.Stats())
		}
		if u, err := d.Assign(t.Context(), encoding.UIDTagV, "a"); err != nil || encoding.UIDNumber(u) != number {
			t.Errorf("after step %d was refused: %s, %v, want %d", at+1, u, err, number)
		}
	}
}

// Whichever step of preparing many names the store refuses, none is cached, and nothing more is tried.
func TestPrepare_refusedSteps(t *testing.T) {
	var names []string
	for i := range 2 * preparedAtOnce {
		names = append(names, fmt.Sprint("v", i))
	}
	for at, leaked := range []int64{0, 0, preparedAtOnce, preparedAtOnce} {
		s := &stumbling{storeInMemory: newMemory(), failsAt: at + 1}
		d := dictionary(s)
		Staged{d}.Prepare(t.Context(), encoding.UIDTagV, names)
		isCached := func(name string) bool { return d.Cached(encoding.UIDTagV, name) }
		if s.calls != at+1 || slices.ContainsFunc(names, isCached) || d.Stats() != (Stats{Leaked: leaked}) {
			t.Errorf("step %d is refused: %d steps, %+v, want %d lost, and no name that is cached", at+1, s.calls,
				d.Stats(), leaked)
		}
	}
}

// Nothing is prepared of names that are cached, and of a single one.
func TestPrepare_nothing(t *testing.T) {
	s := &stumbling{storeInMemory: newMemory()}
	d := dictionary(s)
	Staged{d}.Prepare(t.Context(), encoding.UIDTagV, []string{"a", "b"})
	before := s.calls
	Staged{d}.Prepare(t.Context(), encoding.UIDTagV, []string{"a", "b"})
	Staged{d}.Prepare(t.Context(), encoding.UIDTagV, []string{"c"})
	if before != 4 || s.calls != before {
		t.Errorf("%d steps for two names, and %d more, want 4 and none", before, s.calls-before)
	}
}

// One waits once for another who prepares several names.
func TestClaims_byOthers(t *testing.T) {
	var c claims
	_, _, release := c.claim(encoding.UIDTagV, []string{"a", "b"})
	defer release()
	claimed, byOthers, done := c.claim(encoding.UIDTagV, []string{"a", "b", "c"})
	defer done()
	if !slices.Equal(claimed, []string{"c"}) || len(byOthers) != 1 {
		t.Errorf("claimed %q, %d others to wait for, want c and one", claimed, len(byOthers))
	}
}

// Assigning one UID, or many, logs that UIDs run short.
func TestAssign_warns(t *testing.T) {
	for many, assign := range map[bool]func(d *Dictionary){
		false: func(d *Dictionary) { _, _ = d.Assign(t.Context(), encoding.UIDTagV, "a") },
		true:  func(d *Dictionary) { Staged{d}.Prepare(t.Context(), encoding.UIDTagV, []string{"a", "b"}) },
	} {
		var log bytes.Buffer
		schema := encoding.DefaultSchema()
		schema.TagVWidth = 1
		d := New(Config{Store: newMemory(), Table: table, Schema: schema,
			Log: slog.New(slog.NewTextHandler(&log, nil))})
		if _, err := d.incrementCounter(t.Context(), encoding.UIDTagV, 220, ""); err != nil {
			t.Fatal(err)
		}
		if assign(d); !strings.Contains(log.String(), "UIDs run short") {
			t.Errorf("many %t: the log is %q, want a warning", many, log.String())
		}
	}
}

// noticing calls a function once somebody waits for it.
type noticing struct {
	context.Context
	waits func()
}

func (n noticing) Done() <-chan struct{} {
	n.waits()
	return n.Context.Done()
}

// Who waits for the change of a name has its UID afterwards.
func TestAssign_waits(t *testing.T) {
	d := dictionary(newMemory())
	w, err := d.Withdraw(t.Context(), encoding.UIDTagV, "a")
	if err != nil {
		t.Fatal(err)
	}
	ended := false
	u, err := d.Assign(noticing{t.Context(), func() {
		if !ended {
			ended = true
			w.End()
		}
	}}, encoding.UIDTagV, "a")
	if err != nil || encoding.UIDNumber(u) != 1 || !ended {
		t.Errorf("got %s, %v, after the change: %t, want 1", u, err, ended)
	}
}

// What is cached again, or dropped because it has changed, is neither replaced nor evicted.
func TestCache_same(t *testing.T) {
	d := dictionary(newMemory())
	for range 2 {
		d.cacheIfCurrent(d.Generation(), encoding.UIDTagV, map[string]encoding.UID{"a": {0, 0, 1}})
	}
	if d.Drop(); d.replaced.Load() || d.evicted.Load() {
		t.Errorf("replaced: %t, evicted: %t, want neither", d.replaced.Load(), d.evicted.Load())
	}
	if want := fmt.Sprint("than ", MaxListed/(1<<20), " MiB"); !strings.Contains(ErrTooLong.Error(), want) {
		t.Errorf("%v does not name the bound %s", ErrTooLong, want)
	}
}

// A rename takes five steps. Whichever the store refuses, its error is returned, and a second call completes the
// rename.
func TestRename_refusedSteps(t *testing.T) {
	for at := range 6 {
		s := &stumbling{storeInMemory: newMemory()}
		var log bytes.Buffer
		d := New(Config{Store: s, Table: table, Schema: encoding.DefaultSchema(), MaxName: 4,
			Log: slog.New(slog.NewTextHandler(&log, nil))})
		if _, err := d.Assign(t.Context(), encoding.UIDTagV, "old"); err != nil {
			t.Fatal(err)
		}
		s.calls, s.failsAt = 0, at
		if err := rename1(t, d, "old", "four"); at > 0 && !errors.Is(err, errDenied) || at == 0 && err != nil {
			t.Errorf("step %d is refused: %v", at, err)
		}
		if at == 0 && s.calls != 5 || log.Len() > 0 {
			t.Errorf("%d steps, want 5; the log is %q, want nothing", s.calls, log.String())
		}
		if at > 0 {
			if err := rename1(t, d, "old", "four"); err != nil {
				t.Errorf("after step %d was refused: %v", at, err)
			}
		}
		checkName(t, d, "four", 1)
		checkName(t, d, "old", 0)
		if row, _ := s.row("\x00\x00\x01", encoding.FamilyName); len(row.Cells) != 1 {
			t.Errorf("%d cells of the UID, want its name alone", len(row.Cells))
		}
	}
}

// A rename to a name that has a UID is refused before anything is changed.
func TestRename_takenUnchanged(t *testing.T) {
	s := &stumbling{storeInMemory: newMemory()}
	d := dictionary(s)
	for _, name := range []string{"old", "new"} {
		if _, err := d.Assign(t.Context(), encoding.UIDTagV, name); err != nil {
			t.Fatal(err)
		}
	}
	s.calls = 0
	if err := rename1(t, d, "old", "new"); err == nil || s.calls != 2 {
		t.Errorf("%v after %d steps, want a refusal after both names were read", err, s.calls)
	}
}

// What is cached is not read, and neither is what cannot be a row key.
func TestResolve_reads(t *testing.T) {
	s := &stumbling{storeInMemory: newMemory()}
	d := dictionary(s)
	if _, err := d.Assign(t.Context(), encoding.UIDTagV, "a"); err != nil {
		t.Fatal(err)
	}
	s.calls = 0
	found, err := d.ResolveMany(t.Context(), encoding.UIDTagV, []string{"a"})
	if err != nil || len(found) != 1 || s.calls != 0 {
		t.Errorf("found %v, %v in %d reads, want a and none", found, err, s.calls)
	}
	s.calls, s.failsAt = 0, 2 // the reading of the names that the UIDs have
	if u, err := dictionary(s).Resolve(t.Context(), encoding.UIDTagV, "a"); !errors.Is(err, errDenied) {
		t.Errorf("unchecked: %s, %v, want %v", u, err, errDenied)
	}
	rows := rowsOf([]string{"b", "日本", "c日", "", "a", "b", strings.Repeat("x", MostName+1),
		strings.Repeat("x", MostName)})
	if len(rows) != 3 || string(rows[0])+string(rows[1]) != "ab" || len(rows[2]) != MostName {
		t.Errorf("%d row keys, %.20q, want a, b, and one as long as can be", len(rows), rows)
	}
}

// The counter is no name, also where UIDs are as wide as it is.
func TestEach_counter(t *testing.T) {
	schema := encoding.DefaultSchema()
	schema.TagVWidth = 8
	d := New(Config{Store: open(t), Table: table, Schema: schema})
	if _, err := d.Assign(t.Context(), encoding.UIDTagV, "a"); err != nil {
		t.Fatal(err)
	}
	for e, err := range d.Each(t.Context(), encoding.UIDTagV, "") {
		if err != nil || e.Name != "a" {
			t.Errorf("got the name %q, %v, want a alone", e.Name, err)
		}
	}
}

// A poll whose check fails has seen nothing, so that the next one checks again.
func TestPoll_failedCheck(t *testing.T) {
	s := &stumbling{storeInMemory: newMemory()}
	d := dictionary(s)
	if _, err := d.Assign(t.Context(), encoding.UIDTagV, "a"); err != nil {
		t.Fatal(err)
	}
	w := watcher{d: d, counter: -1}
	s.calls, s.failsAt = 0, 2 // behind the counters
	if err := w.poll(t.Context()); !errors.Is(err, errDenied) || w.counter != -1 {
		t.Errorf("got %v, the counter %d, want %v and -1", err, w.counter, errDenied)
	}
	if err := w.poll(t.Context()); err != nil || w.counter != 0 {
		t.Errorf("the next poll: %v, the counter %d, want 0", err, w.counter)
	}
}

// OnChange is called only if there was a change, however often the cache is checked.
func TestPoll_unchanged(t *testing.T) {
	changes := 0
	w := watcher{d: New(Config{Store: newMemory(), Table: table, Schema: encoding.DefaultSchema(),
		OnChange: func() { changes++ }}), counter: -1}
	for range 3 {
		w.checked = time.Time{}
		if err := w.poll(t.Context()); err != nil || changes != 1 {
			t.Errorf("%d changes are reported, %v, want the first alone", changes, err)
		}
	}
}

// A generation says whether another process has changed names, and a watcher when it began one because of mappings
// that had left the cache.
func TestWatcher_renew(t *testing.T) {
	d := dictionary(newMemory())
	w := watcher{d: d}
	if w.renew(changedByOthers); !w.renewed.IsZero() || d.generations.byOthers.Load() != d.Generation() {
		t.Errorf("of another process: renewed %v, in generation %d, want none and %d", w.renewed,
			d.generations.byOthers.Load(), d.Generation())
	}
	before := d.Generation()
	d.evicted.Store(true)
	if w.renew(perhapsUnchanged); w.renewed.IsZero() || d.generations.byOthers.Load() != before {
		t.Errorf("perhaps unchanged: renewed %v, in generation %d, want now and %d", w.renewed,
			d.generations.byOthers.Load(), before)
	}
}

// Mappings are checked so many at a time, and all of them.
func TestInParts(t *testing.T) {
	var sizes []int
	seen := map[string]bool{}
	all := func(yield func(nameKey, int) bool) {
		for i := range 2*namesPerRead + 10 {
			if !yield(nameKey{encoding.UIDTagK, fmt.Sprint(i)}, i) {
				return
			}
		}
	}
	err := inParts(t.Context(), all, func(_ context.Context, kind encoding.UIDKind, part map[string]int) error {
		for name := range part {
			seen[name] = kind == encoding.UIDTagK
		}
		sizes = append(sizes, len(part))
		return nil
	})
	if err != nil || !slices.Equal(sizes, []int{namesPerRead, namesPerRead, 10}) || len(seen) != 2*namesPerRead+10 {
		t.Errorf("%d mappings in parts of %v, %v", len(seen), sizes, err)
	}
}
