package hbase

import (
	"errors"
	"strings"
	"testing"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
)

// marks takes two marks of a range of table "t".
func (c *cluster) marks(r store.KeyRange) (first, second string, err error) {
	c.Helper()
	first, err = c.st.Version(c.ctx, "t", "t", r)
	if err != nil {
		return first, "", err
	}
	second, err = c.st.Version(c.ctx, "t", "t", r)
	return first, second, err
}

// rests returns a mark that was given twice.
func (c *cluster) rests(r store.KeyRange) string {
	c.Helper()
	first, second, err := c.marks(r)
	if err != nil || first == "" || first != second {
		c.Fatalf("marks %x and %x, error %v, want twice the same", first, second, err)
	}
	return first
}

// A mark is one of all regions of its range and of no others, and of one opening
// of each.
func TestMark_regions(t *testing.T) {
	c := start(t, hbasefake.Options{Servers: 2})
	c.fill(40, "r0013", "r0026")
	r := store.KeyRange{Start: []byte("r0005"), Stop: []byte("r0026")} // two of three
	f := func(name string, want bool, event func()) {
		t.Helper()
		before := c.rests(r)
		event()
		// A server that has gone costs an attempt.
		for range 10 {
			if _, _, err := c.marks(r); err == nil {
				break
			}
		}
		if changed := c.rests(r) != before; changed != want {
			t.Errorf("%s: the mark changed %v, want %v", name, changed, want)
		}
	}
	f("nothing", false, func() {})
	f("a scan", false, func() { c.mustRead(store.Scan{MaxRows: 1}, []string{"r0000 q0 v0"}) })
	f("a put into the first region", true, func() { c.Put("t", "r0001", "t", "q", "v") })
	f("a put into the second", true, func() { c.Put("t", "r0020", "t", "q", "v") })
	f("a put into the third", false, func() { c.Put("t", "r0030", "t", "q", "v") })
	f("a move", true, func() { c.MoveRegion("t", []byte("r0020")) })
	f("a split", true, func() { c.SplitRegion("t", []byte("r0008")) })
	f("a new server process", true, func() {
		for i := range 2 {
			c.StopServer(i)
			if err := c.RestartServer(i); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// What may change without being written has no mark that is given twice.
func TestMark_mortal(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(3)
	c.rests(store.KeyRange{})
	c.Alter("t", "t", "TTL", "FOREVER")
	c.rests(store.KeyRange{})
	c.Alter("t", "t", "TTL", "3600")
	for range 3 { // the first mark needs no answer of the master
		first, second, err := c.marks(store.KeyRange{})
		if !errors.Is(err, ErrExpiring) || second != "" || !strings.Contains(err.Error(), "3600") {
			t.Errorf("marks %x and %x, error %v, want %v", first, second, err, ErrExpiring)
		}
	}
}

// The master is asked once for a region that rests, and never for one that is
// written to.
func TestMark_asksMaster(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(3)
	c.SetHook(nil) // counting begins
	for i := range 5 {
		c.Put("t", "r0001", "t", "q", strings.Repeat("v", i))
		if _, err := c.st.Version(c.ctx, "t", "t", store.KeyRange{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.Calls("GetTableDescriptors"); n != 0 {
		t.Errorf("%d questions to the master while the region changed", n)
	}
	for range 5 {
		c.rests(store.KeyRange{})
	}
	if n := c.Calls("GetTableDescriptors"); n != 1 {
		t.Errorf("%d questions to the master while the region rested, want 1", n)
	}
}

func TestMark_noReadPoint(t *testing.T) {
	c := start(t, hbasefake.Options{NoReadPoint: true})
	c.fill(3)
	if mark, _, err := c.marks(store.KeyRange{}); mark != "" || !errors.Is(err, errNoReadPoint) {
		t.Errorf("mark %x, error %v, want %v", mark, err, errNoReadPoint)
	}
}

// States that are noted out of order make marks that nobody else has: two marks
// are equal only if the state was there all the time.
func TestSeen_order(t *testing.T) {
	var s regionHistory
	old, fresh := []regionState{{"r", 1, 1, 7}}, []regionState{{"r", 1, 1, 8}}
	f := func(states []regionState, wantAsk bool) string {
		t.Helper()
		mark, ask := s.observe("t", states)
		if ask != wantAsk {
			t.Errorf("state %v: to be asked for %v, want %v", states, ask, wantAsk)
		}
		return mark
	}
	first := f(fresh, false)
	f(old, false) // of a slower call
	if again := f(fresh, false); again == first {
		t.Error("a mark came back without a question to the master")
	}
	f(fresh, true)
	s.confirmNoExpiry("t", old) // no longer the last one
	f(fresh, true)
	s.confirmNoExpiry("t", fresh)
	f(fresh, false)
	if mark, ask := s.observe("other", fresh); ask || mark == first {
		t.Errorf("another family has mark %x, ask %v", mark, ask)
	}
}

// A coprocessor may do anything to what is read.
func TestMark_coprocessor(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(3)
	c.AlterTable("t", "coprocessor$1", "|org.example.Observer|1073741823|")
	if _, second, err := c.marks(store.KeyRange{}); second != "" || !errors.Is(err, ErrExpiring) {
		t.Errorf("mark %x, error %v, want %v", second, err, ErrExpiring)
	}
}
