package unchanged

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/hbase/regions"
	"downpour/pushdown/store/storetest"
)

// version returns a version token of a range of table "t" that is proven.
func (c *cluster) version(r store.KeyRange) (string, error) {
	return storetest.Version(c.ctx, c.st, "t", "t", r)
}

// versions requests two version tokens of a range of table "t".
func (c *cluster) versions(r store.KeyRange) (first, second string, err error) {
	c.Helper()
	first, err = c.version(r)
	if err != nil {
		return first, "", err
	}
	second, err = c.version(r)
	return first, second, err
}

// stableVersion returns a version token that was returned twice.
func (c *cluster) stableVersion(r store.KeyRange) string {
	c.Helper()
	first, second, err := c.versions(r)
	if err != nil || first == "" || first != second {
		c.Fatalf("version tokens %x and %x, error %v, want twice the same", first, second, err)
	}
	return first
}

// A version token depends on all regions of its range and on no others, and on the
// opening of each.
func TestVersion_regions(t *testing.T) {
	c := start(t, hbasefake.Options{Servers: 2})
	c.fill(40, "r0013", "r0026")
	r := store.KeyRange{Start: []byte("r0005"), Stop: []byte("r0026")} // two of three
	f := func(name string, want bool, event func()) {
		t.Helper()
		before := c.stableVersion(r)
		event()
		// Attempts fail while the location of a server that is gone is cached.
		for range 10 {
			if _, _, err := c.versions(r); err == nil {
				break
			}
		}
		if changed := c.stableVersion(r) != before; changed != want {
			t.Errorf("%s: the version token changed %v, want %v", name, changed, want)
		}
	}

	f("nothing", false, func() {})
	f("a scan", false, func() {
		if got, err := c.read(store.KeyRange{Stop: []byte("r0001")}); err != nil || len(got) != 1 ||
			got[0] != "r0000 q0 v0" {
			t.Errorf("read %q, %v", got, err)
		}
	})
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

// Rows that may change without being written get no version token twice.
func TestVersion_expiring(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(3)
	c.stableVersion(store.KeyRange{})
	c.Alter("t", "t", "TTL", "FOREVER")
	c.stableVersion(store.KeyRange{})
	c.Alter("t", "t", "TTL", "3600")
	for range 3 { // the first token equals no other, so the master is not asked
		first, second, err := c.versions(store.KeyRange{})
		if !errors.Is(err, ErrExpiring) || second != "" || !strings.Contains(err.Error(), "3600") {
			t.Errorf("version tokens %x and %x, error %v, want %v", first, second, err, ErrExpiring)
		}
	}
}

// The master is asked once for a region that does not change, and never for one that
// is written to.
func TestVersion_asksMaster(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(3)
	c.SetHook(nil) // counting begins
	for i := range 5 {
		c.Put("t", "r0001", "t", "q", strings.Repeat("v", i))
		if _, err := c.version(store.KeyRange{}); err != nil {
			t.Fatal(err)
		}
	}

	if n := c.Calls("GetTableDescriptors"); n != 0 {
		t.Errorf("%d questions to the master while the region changed, want none", n)
	}

	for range 5 {
		c.stableVersion(store.KeyRange{})
	}

	if n := c.Calls("GetTableDescriptors"); n != 1 {
		t.Errorf("%d questions to the master while the region did not change, want 1", n)
	}

	c.Alter("t", "t", "TTL", "3600")
	for range 5 {
		if _, second, err := c.versions(store.KeyRange{}); second != "" || !errors.Is(err, ErrExpiring) {
			t.Errorf("version token %x, error %v, want %v", second, err, ErrExpiring)
		}
	}

	if n := c.Calls("GetTableDescriptors"); n != 2 {
		t.Errorf("%d questions to the master in all, want one more for a region whose cells expire", n)
	}
}

func TestVersion_noReadPoint(t *testing.T) {
	c := start(t, hbasefake.Options{NoReadPoint: true})
	c.fill(3)
	if token, _, err := c.versions(store.KeyRange{}); token != "" || !errors.Is(err, ErrNoReadPoint) {
		t.Errorf("version token %x, error %v, want %v", token, err, ErrNoReadPoint)
	}
}

// States that are observed out of order get tokens that equal no others: two tokens
// are equal only if the state was there all the time.
func TestRegionHistory_order(t *testing.T) {
	var h regionHistory
	old, fresh := []regionState{{"r", 1, 1, 7}}, []regionState{{"r", 1, 1, 8}}
	f := func(states []regionState, wantCheck bool) string {
		t.Helper()
		token, needsCheck, _ := h.observe("t", states)
		if needsCheck != wantCheck {
			t.Errorf("state %v: needs a check %v, want %v", states, needsCheck, wantCheck)
		}
		return token
	}

	first := f(fresh, false)
	f(old, false) // of a slower call
	if again := f(fresh, false); again == first {
		t.Error("a version token came back although another state was observed in between")
	}

	f(fresh, true)
	h.noteChecked("t", old, nil) // no longer the last one
	f(fresh, true)
	h.noteChecked("t", fresh, nil)
	f(fresh, false)
	if token, needsCheck, _ := h.observe("other", fresh); needsCheck || token == first {
		t.Errorf("another family has version token %x, needs a check %v, want another token and no check", token,
			needsCheck)
	}
}

// A table with a coprocessor gets no version token twice: a coprocessor may change what is read.
func TestVersion_coprocessor(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(3)
	c.AlterTable("t", "coprocessor$1", "|org.example.Observer|1073741823|")
	if _, second, err := c.versions(store.KeyRange{}); second != "" || !errors.Is(err, ErrExpiring) {
		t.Errorf("version token %x, error %v, want %v", second, err, ErrExpiring)
	}
}

// Of two attempts the second may succeed, a third is not made, and another error ends the first.
func TestRetryReopened(t *testing.T) {
	other := errors.New("other")
	for want, outcomes := range map[string][]error{
		"1 <nil>":                  {nil},
		"2 <nil>":                  {errReopened, nil},
		"2 " + errReopened.Error(): {errReopened, errReopened},
		"1 other":                  {other},
		"2 other":                  {fmt.Errorf("wrapped: %w", errReopened), other},
	} {
		n := 0
		err := retryReopened(func() error { n++; return outcomes[n-1] })
		if got := fmt.Sprint(n, err); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A region whose opening is read before its server is called, and that is elsewhere, is located again.
func TestVersion_movedBeforeFirst(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(3)
	if _, err := c.st.router.Locate(c.ctx, "t", nil); err != nil {
		t.Fatal(err)
	}
	c.MoveRegion("t", []byte("r0000"))
	if _, err := c.version(store.KeyRange{}); !errors.Is(err, regions.ErrMoved) {
		t.Errorf("got %v, want %v", err, regions.ErrMoved)
	}
	if _, err := c.version(store.KeyRange{}); err != nil {
		t.Error(err)
	}
}

// A token of known states is returned before the openings of its regions were read again. Its
// proof fails if one was opened again before the read point was taken.
func TestVersion_early(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(3)
	want := c.stableVersion(store.KeyRange{})
	for _, reopened := range []bool{false, true} {
		release := make(chan struct{})
		c.OnReadPoint(func(table string) {
			if table == regions.MetaTable {
				<-release
			}
		})
		token, proof, err := c.st.Version(c.ctx, "t", "t", store.KeyRange{})
		if token != want || err != nil {
			t.Errorf("got token %x, error %v, want %x", token, err, want)
		}
		if reopened {
			c.Snapshot("t", "s")
			c.RestoreSnapshot("t", "s")
		}
		close(release)
		if err := proof(); (err != nil) != reopened || reopened && !strings.Contains(err.Error(), `table "t"`) {
			t.Errorf("opened again %v: the proof is %v", reopened, err)
		}
		c.OnReadPoint(nil)
	}
}
