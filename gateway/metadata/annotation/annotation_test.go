package annotation

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	_ "downpour/encoding/seedtest" // gives rapid its seed
	"downpour/pushdown/store/open/opentest"
	"downpour/pushdown/store/pebble"
)

const (
	start  = 1356998400
	series = "000001000001000001"
)

func fixture(t testing.TB, salt int) (*Catalog, *pebble.Store) {
	t.Helper()
	s := opentest.Embedded(t, opentest.Table("tsdb", "t"))
	schema := encoding.DefaultSchema()
	schema.SaltWidth, schema.SaltBuckets = salt, 4
	return New(Config{Store: s, Table: "tsdb", Schema: schema}), s
}

func text(s string) *string { return &s }
func number(n int64) *int64 { return &n }

func TestPut(t *testing.T) {
	n, _ := fixture(t, 1)
	f := func(c Change, overwrite bool, want encoding.Annotation) {
		t.Helper()
		for _, get := range []func() (*encoding.Annotation, error){
			func() (*encoding.Annotation, error) { return n.Put(t.Context(), c, overwrite) },
			func() (*encoding.Annotation, error) { return n.Get(t.Context(), c.TSUID, c.Start) },
		} {
			got, err := get()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Error(diff)
			}
		}
	}
	note := encoding.Annotation{
		TSUID:       series,
		StartTime:   start + 1,
		Description: "d",
		Custom:      map[string]string{"k": "v"},
	}
	f(Change{TSUID: series, Start: start + 1, Description: text("d"), Custom: note.Custom}, false, note)
	note.Notes, note.EndTime = "n", start+9
	f(Change{TSUID: series, Start: start + 1, Notes: text("n"), End: number(start + 9)}, false, note)
	note.Description = ""
	f(Change{TSUID: series, Start: start + 1, Description: text("")}, false, note)
	f(Change{TSUID: series, Start: start + 1, Notes: text("only")},
		true, encoding.Annotation{TSUID: series, StartTime: start + 1, Notes: "only"})
	f(Change{Start: start + 1, Notes: text("global")},
		false, encoding.Annotation{StartTime: start + 1, Notes: "global"})
	// A start in ms on a full second names the same note as the second, and the note keeps its
	// start in seconds.
	f(Change{Start: (start + 1) * 1000, End: number(5)},
		false, encoding.Annotation{StartTime: start + 1, EndTime: 5, Notes: "global"})
}

func TestPut_refused(t *testing.T) {
	n, _ := fixture(t, 0)
	var refused *RefusedError
	f := func(c Change, want error) {
		t.Helper()
		if _, err := n.Put(t.Context(), c, false); !errors.Is(err, want) && !(want == nil && errors.As(err, &refused)) {
			t.Errorf("%+v: %v, want %v", c, err, want)
		}
	}
	f(Change{Notes: text("n")}, ErrNoStart)
	f(Change{Start: start}, ErrNoChange)
	f(Change{Start: start, End: number(0)}, ErrNoChange)
	f(Change{Start: start, TSUID: "xyz0", Notes: text("n")}, nil)
	f(Change{Start: start, TSUID: "000001", Notes: text("n")}, nil)
	if a, err := n.Get(t.Context(), series, start); a != nil || err != nil {
		t.Errorf("after refused puts: got %v, %v, want no note", a, err)
	}
}

// Of concurrent changes of a note at least one succeeds, and every other one succeeds too or
// fails with ErrConflict.
func TestPut_race(t *testing.T) {
	n, _ := fixture(t, 0)
	for round := range 20 {
		errs := make([]error, 8)
		var wg sync.WaitGroup
		at := start + int64(round)
		for i := range errs {
			wg.Go(func() {
				stored, err := n.Get(t.Context(), "", at)
				custom := map[string]string{fmt.Sprint(i): ""}
				if stored != nil {
					for k := range stored.Custom {
						custom[k] = ""
					}
				}
				if err == nil {
					_, errs[i] = n.Put(t.Context(),
						Change{Start: at, Description: text(fmt.Sprint(i)), Custom: custom}, false)
				}
			})
		}
		wg.Wait()
		final, err := n.Get(t.Context(), "", at)
		if err != nil || final == nil {
			t.Fatalf("got %v, %v, want the note", final, err)
		}
		won := 0
		for i, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, ErrConflict) {
				t.Errorf("change %d: got %v, want success or a conflict", i, err)
			}
		}
		if won == 0 {
			t.Error("all changes were refused, want at least one to succeed")
		}
	}
}

// DeleteRange deletes exactly the notes of its series and times, and Global returns exactly the
// global notes that are left.
func TestRange_property(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n, _ := fixture(t, rapid.IntRange(0, 1).Draw(rt, "salt"))
		times := rapid.SliceOfNDistinct(rapid.Int64Range(start-4000, start+8000), 1, 12, rapid.ID[int64]).
			Draw(rt, "times")
		others := []string{"", series, "000001000001000002"}
		for _, at := range times {
			for _, tsuid := range others {
				if _, err := n.Put(t.Context(), Change{TSUID: tsuid, Start: at, Notes: text("n")}, false); err != nil {
					rt.Fatal(err)
				}
			}
		}
		from := rapid.Int64Range(start-5000, start+5000).Draw(rt, "from")
		to := rapid.Int64Range(from, start+9000).Draw(rt, "to")
		tsuid := rapid.SampledFrom(others).Draw(rt, "series")
		inside := func(at int64) bool { return at >= from && at <= to }
		want := 0
		for _, at := range times {
			if inside(at) {
				want++
			}
		}
		got, err := n.DeleteRange(t.Context(), tsuid, from*1000, to*1000)
		if err != nil || got != want {
			rt.Fatalf("deleted %d, %v, want %d", got, err, want)
		}
		for _, at := range times {
			for _, other := range others {
				a, err := n.Get(t.Context(), other, at)
				if gone := other == tsuid && inside(at); err != nil || (a == nil) != gone {
					rt.Fatalf("%q at %d: %v, %v, want gone %t", other, at, a, err, gone)
				}
			}
		}
		left(rt, n, times, tsuid, inside)
	})
}

// left checks what Global finds after notes of the series deleted were deleted, "" for global
// ones.
func left(t *rapid.T, n *Catalog, times []int64, deleted string, inside func(int64) bool) {
	var want []int64
	for _, at := range times {
		if deleted != "" || !inside(at) {
			want = append(want, at)
		}
	}
	slices.Sort(want)
	notes, err := n.Global(t.Context(), start-5000, start+9000)
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, a := range notes {
		got = append(got, a.StartTime)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}
