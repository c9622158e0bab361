package dispatch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/pushdown/resultcache"
	"downpour/pushdown/store"
)

// A place has the attempts of the last hour. One that ended because its query did has not failed.
func TestTally(t *testing.T) {
	var c tally
	noon := time.Unix(1356998400, 0)
	ctx, gone := context.WithCancel(t.Context())
	c.count(ctx, noon.Add(-time.Hour), time.Hour, 1<<40, nil) // too old
	c.count(ctx, noon.Add(-59*time.Minute), time.Second, 100, nil)
	c.count(ctx, noon, 3*time.Second, 50, nil)
	c.count(ctx, noon, time.Second, 7, errors.New(strings.Repeat("x", 600)))
	c.count(ctx, noon, time.Second, 7, resultcache.ErrUnproven)
	c.count(ctx, noon, time.Second, 7, context.Canceled) // one of two at a part
	gone()
	c.count(ctx, noon, 2*time.Second, 4, nil)
	c.count(ctx, noon, time.Second, 7, errors.New("gone"))
	want := PlaceStats{
		Parts:     3,
		Failed:    1,
		Bytes:     154,
		Mean:      2 * time.Second,
		Longest:   3 * time.Second,
		LastError: strings.Repeat("x", 500),
		LastFail:  noon,
	}
	if diff := cmp.Diff(want, c.stats(noon)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := c.stats(noon.Add(time.Hour)); got.Parts != 0 || got.Failed != 0 || got.LastError == "" {
		t.Errorf("an hour later: %+v, want only the last error", got)
	}
}

// Regions are counted where they are read: at the server next to them, else in this
// process. Runs are of neighbours.
func TestExecutor_Places(t *testing.T) {
	beside := []string{"a:1", "b:1"}
	e := New(Config{Servers: []Server{&named{address: "pa:2"}, &named{address: "pb:2"}}})
	for i, b := range beside {
		e.servers.list()[i].health = serverHealth{regionServer: b, checked: time.Now()}
	}
	e.regions.set("t", []store.Region{{Server: "a:1"}, {Server: "a:1"}, {Server: "b:1"}, {Server: "a:1"}},
		time.Now().Add(-time.Hour))
	places, runs := e.Places("t")
	if diff := cmp.Diff([]PlaceRun{{0, 2}, {1, 1}, {0, 1}}, runs); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	want := []PlaceStats{{Address: "pa:2", Beside: "a:1", State: StateHealthy, Regions: 3},
		{Address: "pb:2", Beside: "b:1", State: StateHealthy, Regions: 1}, {Address: InProcess}}
	if diff := cmp.Diff(want, places); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}

	servers := e.servers.list()
	e.servers.markFailed(servers[0])
	e.servers.keepError(servers[0], errors.New("another release"))
	servers[1].health.checked = time.Now().Add(-time.Hour)
	places, runs = e.Places("t")
	if places[0].State != StateAway || places[1].State != StateUnchecked || runs[0].Place == 0 {
		t.Errorf("after a failure: %+v, %+v; want the first away and the second unchecked", places, runs)
	}
	if places[0].LastError != "another release" || places[0].LastFail.IsZero() || places[1].LastError != "" {
		t.Errorf("after a check has failed: %+v, want its error", places)
	}
	servers[1].tally.count(t.Context(), time.Now(), 0, 0, errors.New("a part"))
	if places, _ = e.Places("t"); places[1].LastError != "a part" {
		t.Errorf("after an attempt has failed: %+v, want its error", places[1])
	}
	e.servers.markFailed(servers[1])
	places, runs = e.Places("t")
	if diff := cmp.Diff([]PlaceRun{{2, 4}}, runs); diff != "" || places[2].Regions != 4 {
		t.Errorf("without servers: %+v, runs (-want +got):\n%s", places[2], diff)
	}
	if _, runs := e.Places("other"); len(runs) != 0 {
		t.Errorf("of a table that nobody has asked for: %v, want none", runs)
	}
}

// named is a server with only an address.
type named struct {
	Server
	address string
}

func (n *named) Address() string { return n.address }
