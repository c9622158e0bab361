package uid

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// rename1 renames a tag value.
func rename1(t *testing.T, d *Dictionary, from, to string) error {
	t.Helper()
	return d.Rename(t.Context(), encoding.UIDTagV, from, to)
}

func TestRename(t *testing.T) {
	s := open(t)
	d := dictionary(s)
	for _, name := range []string{"web01", "web02"} {
		if _, err := d.Assign(t.Context(), encoding.UIDTagV, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := rename1(t, d, "web01", "web03"); err != nil {
		t.Fatal(err)
	}
	checkName(t, d, "web03", 1)
	checkName(t, d, "web01", 0)
	var refusal *RefusedError
	err := rename1(t, d, "web03", "web02")
	if want := `When trying rename("web03", "web02") on UniqueId(tsdb-uid, tagv, 3): ` +
		`new name already assigned ID=[0, 0, 2]`; !errors.As(err, &refusal) || err.Error() != want {
		t.Errorf("to a taken name: got %v, want %s", err, want)
	}
	// To rename a name to itself is refused, as in OpenTSDB, and it keeps its UID.
	err = rename1(t, d, "web03", "web03")
	if want := `new name already assigned ID=[0, 0, 1]`; !errors.As(err, &refusal) ||
		!strings.HasSuffix(err.Error(), want) {
		t.Errorf("to its own name: got %v, want %s", err, want)
	}
	checkName(t, d, "web03", 1)
	if err := rename1(t, d, "nobody", "nobody"); !isNoName(err) {
		t.Errorf("an unknown name to itself: got %v, want no such name", err)
	}
	if err := rename1(t, d, "nobody", "web09"); !isNoName(err) {
		t.Errorf("an unknown name: got %v, want no such name", err)
	}
	if err := rename1(t, d, "web03", "日本"); !errors.As(err, &refusal) {
		t.Errorf("to a name that cannot be stored: got %v, want a refusal", err)
	}
}

// checkName looks a name up in the table, past the cache. It wants the UID with the number id,
// or none for 0.
func checkName(t *testing.T, d *Dictionary, name string, id uint64) {
	t.Helper()
	d.Drop()
	u, err := d.Resolve(t.Context(), encoding.UIDTagV, name)
	if id == 0 {
		if !isNoName(err) {
			t.Errorf("%s: %s, %v, want none", name, u, err)
		}
		return
	}
	if err != nil || encoding.UIDNumber(u) != id {
		t.Errorf("%s: %s, %v, want %d", name, u, err, id)
		return
	}
	if back, err := d.Name(t.Context(), encoding.UIDTagV, u); err != nil || back != name {
		t.Errorf("%s: name %q, %v, want %q", u, back, err, name)
	}
}

// Several processes rename one name at the same time, while another process assigns one of the
// new names. At most one rename succeeds, and the mappings lead both ways afterwards.
func TestRename_race(t *testing.T) {
	renamed := 0
	defer func() {
		if renamed == 0 {
			t.Error("no rename has succeeded in any round")
		}
	}()
	for round := range 20 {
		s := open(t)
		first := dictionary(s)
		if _, err := first.Assign(t.Context(), encoding.UIDTagV, "old"); err != nil {
			t.Fatal(err)
		}
		won := make([]error, 4)
		var wg sync.WaitGroup
		for i := range won {
			name := fmt.Sprintf("new%d", i)
			wg.Go(func() { won[i] = dictionary(s).Rename(context.Background(), encoding.UIDTagV, "old", name) })
		}
		wg.Go(func() { _, _ = dictionary(s).Assign(context.Background(), encoding.UIDTagV, "new0") })
		wg.Wait()
		winner := ""
		for i, err := range won {
			if err == nil {
				if winner != "" {
					t.Fatalf("round %d: %s and new%d won", round, winner, i)
				}
				winner = fmt.Sprintf("new%d", i)
				renamed++
			}
		}
		if winner == "" {
			winner = "old" // no rename succeeded, because new0 was assigned concurrently
		}
		checkName(t, first, winner, 1)
	}
}

// failing is a store whose first call of Apply fails.
type failing struct {
	store.Store
	fail bool
}

func (*failing) Features() store.Features { return store.Features{} }

func (f *failing) Apply(ctx context.Context, table string, m []store.Mutation) error {
	if f.fail {
		f.fail = false
		return store.ErrUnavailable
	}
	return f.Store.Apply(ctx, table, m)
}

// A rename that failed halfway is completed by a second call.
func TestRename_again(t *testing.T) {
	s := open(t)
	d := dictionary(&failing{s, true})
	if _, err := d.Assign(t.Context(), encoding.UIDTagV, "old"); err != nil {
		t.Fatal(err)
	}
	if err := rename1(t, d, "old", "new"); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("got %v, want %v", err, store.ErrUnavailable)
	}
	if err := rename1(t, d, "old", "new"); err != nil {
		t.Fatal(err)
	}
	checkName(t, d, "old", 0)
	checkName(t, d, "new", 1)
}

// overtaken is a store into which another process puts a mapping before the first exchange.
type overtaken struct {
	store.Store
	by []store.Mutation
}

func (*overtaken) Features() store.Features { return store.Features{} }

func (o *overtaken) CompareAndPut(ctx context.Context, table string, cell store.CellKey,
	old, value []byte) (bool, error) {
	by := o.by
	o.by = nil
	if err := o.Store.Apply(ctx, table, by); err != nil {
		return false, err
	}
	return o.Store.CompareAndPut(ctx, table, cell, old, value)
}

// A rename that another process overtakes says what that has done: renamed the same UID, or given the new name one.
func TestRename_overtaken(t *testing.T) {
	for want, m := range map[string]store.Mutation{
		"Ongoing rename on the same ID": {
			Row: []byte{0, 0, 1}, Family: encoding.FamilyName, Value: []byte("other"),
		},
		"new name already assigned ID=[0, 0, 9]": {
			Row: []byte("new"), Family: encoding.FamilyID, Value: []byte{0, 0, 9},
		},
	} {
		s := open(t)
		if _, err := dictionary(s).Assign(t.Context(), encoding.UIDTagV, "old"); err != nil {
			t.Fatal(err)
		}
		m.Qualifier = encoding.UIDTagV.Qualifier()
		err := rename1(t, dictionary(&overtaken{s, []store.Mutation{m}}), "old", "new")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		rows, err := s.Get(t.Context(), table, encoding.FamilyName, [][]byte{{0, 0, 1}})
		name := "old" // again, if another writer has taken the new name
		if string(m.Row) != "new" {
			name = "other"
		}
		if err != nil || len(rows) != 1 || string(rows[0].Cells[0].Value) != name {
			t.Errorf("the UID's name is in %v, %v, want %s", rows, err, name)
		}
	}
}
