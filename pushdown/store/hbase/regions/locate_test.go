package regions

import (
	"context"
	"errors"
	"testing"

	"downpour/pushdown/store/hbase/hbasefake"
)

// The cache has the region of each key, and none where it has a hole.
func TestRegionCache_find(t *testing.T) {
	rc := newRegionCache()
	for _, l := range []*Location{
		{Table: "t", Start: []byte("c"), Stop: []byte("f")}, {Table: "t", Stop: []byte("b")},
		{Table: "t", Start: []byte("f")},
	} {
		rc.add(l)
	}
	check := func(regions map[string]string) {
		t.Helper()
		for key, want := range regions {
			got := "none"
			if l := rc.find("t", []byte(key)); l != nil {
				got = string(l.Start)
			}
			if got != want {
				t.Errorf("key %q: got the region from %q on, want %q", key, got, want)
			}
		}
	}
	check(map[string]string{"": "", "a": "", "b": "none", "c": "c", "d": "c", "f": "f", "g": "f"})

	// A new one takes the place of all that it overlaps.
	rc.add(&Location{Table: "t", Start: []byte("e")})
	check(map[string]string{"": "", "b": "none", "c": "none", "d": "none", "e": "e", "f": "e", "g": "e"})
}

// One look-up of a table is made at a time, and the next when that is over. Other tables do not wait.
func TestRegionCache_lockLookUp(t *testing.T) {
	rc := newRegionCache()
	for range 3 {
		release, err := rc.lockLookUp(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := rc.lockLookUp(ended, "t"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v while another looks up, want the end of the wait", err)
		}
		other, err := rc.lockLookUp(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}
		other()
		release()
	}
}

// Who waits for the look-up of another to end waits no longer than the own context.
func TestLocate_waits(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.CreateTable("t", []string{"t"})
	release, err := c.r.regions.lockLookUp(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if loc, err := c.r.Locate(ended, "t", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v, want the end of the wait", loc, err)
	}
	release()
}
