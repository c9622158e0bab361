package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"downpour/gateway"
)

// twoPoints puts two points that are 53 years apart: filled every 40 s, they become 42 million.
func twoPoints(b *bench) {
	b.Helper()
	b.Put("two 1000 1 a=b", "two 1700000000 2 a=b")
}

// A query whose fill policy would make millions of two points is refused before anything is filled,
// as JSON and as Arrow, with the default budget and with a small one.
func TestMemory_twoPoints(t *testing.T) {
	for _, memory := range []string{"", "64MiB"} {
		b := open(t, func(c *gateway.Config) { c.Memory = memory })
		twoPoints(b)
		arrow := []string{"Accept", "application/vnd.apache.arrow.stream"}
		const question = "/api/query?start=1&m=sum:40s-avg-zero:two"
		b.Get(question) // so that names are in the caches
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var group sync.WaitGroup
		for i := range 10 {
			group.Go(func() {
				var header []string
				if i%2 == 0 {
					header = arrow
				}
				a, err := b.Try(context.Background(), "GET", question, nil, header...)
				if err != nil || a.Status != http.StatusRequestEntityTooLarge {
					t.Errorf("%d %s, %v, want a refusal", a.Status, a.Body, err)
				}
			})
		}
		group.Wait()
		runtime.ReadMemStats(&after)
		if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 50 {
			t.Errorf("%d MiB were allocated for ten refusals, want 50 at most", grown)
		}
		b.Settled()

		// A range that fits is answered.
		if a := b.Get("/api/query?start=1699996400&end=1700000000&m=sum:40s-avg-zero:two"); a.Status != 200 ||
			strings.Count(a.Body, ":") < 90 {
			t.Errorf("%d %s, want 90 buckets", a.Status, a.Body)
		}
	}
}

// The sub-queries of a request share the memory of one request, and requests share that of the
// process: two sub-queries are answered in full, three requests of 60 are refused.
func TestMemory_manySubQueries(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.Memory = "64MiB" })
	var lines []string
	for i := range 20_000 {
		lines = append(lines, fmt.Sprintf("big %d %d host=h%d", 1356998400+i/4, i, i%4))
	}
	b.Put(lines...)
	var subs []string
	for i := range 60 {
		subs = append(subs, fmt.Sprintf("m=none:rate{counter,%d}:big", i+1))
	}
	ask := func(n int) answer {
		a, err := b.Try(context.Background(), "GET",
			"/api/query?start=1356998400&end=1357084800&arrays=true&"+strings.Join(subs[:n], "&"), nil)
		if err != nil {
			t.Error(err)
		}
		return a
	}
	if a := ask(2); a.Status != 200 || strings.Count(a.Body, "],[") < 2*19_000 {
		t.Errorf("two sub-queries: %d, %d points", a.Status, strings.Count(a.Body, "],["))
	}
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			if a := ask(60); a.Status != 413 && a.Status != 503 || !strings.Contains(a.Body, "DOWNPOUR_") {
				t.Errorf("%d %.200s, want a refusal that names its limit", a.Status, a.Body)
			}
		})
	}
	group.Wait()
	b.Settled()
	if a := ask(2); a.Status != 200 {
		t.Errorf("afterwards: %d %s", a.Status, a.Body)
	}
}

// longMerge returns a query that reads some hundred rows and then has billions of filled buckets to
// merge: it takes far longer than any test waits, and little memory at a time.
func longMerge(b *bench) (question string) {
	b.Helper()
	var lines []string
	for i := range 500 {
		lines = append(lines, fmt.Sprintf("wide 1356998400 1 host=h%d", i))
	}
	b.Put(append(lines, "wide 1357080000 1 host=h0")...)
	var subs []string
	for i := range 60 {
		subs = append(subs, fmt.Sprintf("m=sum:%dms-avg-zero:wide", 1000+i))
	}
	return "/api/query?start=1356998400&end=1357084800&" + strings.Join(subs, "&")
}

// A query that times out while its groups are merged ends then, with that error.
func TestMemory_deadlineInTheMerge(t *testing.T) {
	b := open(t, func(c *gateway.Config) {
		c.QueryTimeout, c.LimitJSON, c.LimitMemory = 300*time.Millisecond, 1<<40, 1<<40
	})
	b.Refused(b.Get(longMerge(b)), http.StatusRequestTimeout, "Query timeout exceeded")
	b.Settled()
}

// If the client leaves while groups are merged, the query ends.
func TestMemory_clientLeaves(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.LimitJSON, c.LimitMemory = 1<<40, 1<<40 })
	question := longMerge(b)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	gone := make(chan error, 1)
	go func() {
		_, err := b.Try(ctx, "GET", question, nil)
		gone <- err
	}()

	// Groups are being made when memory is held and no row is being read.
	eventually(t, "merging", func() bool { return b.HeldBytes("query") != "0" && b.Store.Scans.Load() == 0 })
	leave()
	if err := <-gone; err == nil {
		t.Error("the query was answered, want that the client is gone")
	}
	b.Settled()
}

// A live query whose fill policy would make millions of two points is refused before anything is
// filled, whether it is kept up to date or run in full at each tick, and holds nothing afterwards.
// A live query that fits is counted as held.
func TestMemory_live(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.Memory = "64MiB" })
	twoPoints(b)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, query := range []string{
		`{"start":1,"queries":[{"metric":"two","aggregator":"sum","downsample":"40s-avg-zero"}]}`,
		`{"start":1,"queries":[{"metric":"two","aggregator":"none","rate":true,"downsample":"10s-avg-nan"}]}`,
		`{"start":1,"end":1700000000,"queries":[{"metric":"two","aggregator":"sum","downsample":"40s-avg-zero"}]}`,
		`{"start":1,"useCalendar":true,"queries":[{"metric":"two","aggregator":"sum","downsample":"40s-avg-zero"}]}`,
	} {
		if m := subscribe(b, query, "").next(); m.Type != "error" || m.Error.Code != 413 {
			t.Errorf("%s: got %+v, want error 413", query, m)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 100 {
		t.Errorf("%d MiB were allocated for four refusals, want 100 at most", grown)
	}
	b.Settled()
	if got := b.HeldBytes("live"); got != "0" {
		t.Errorf("%s bytes are held for live queries that were refused", got)
	}
	b.Put(fmt.Sprintf("two %d 3 a=b", time.Now().Unix()-600))
	s := subscribe(b, `{"start":"1h-ago","queries":[{"metric":"two","aggregator":"sum","downsample":"1s-avg-zero"}]}`,
		"")
	if m := s.next(); m.Type != "snapshot" || b.HeldBytes("live") == "0" {
		t.Errorf("got %s with %s bytes held, want a snapshot that is counted", m.Type, b.HeldBytes("live"))
	}
}

// Where the memory for hours side by side is refused, each with all buckets of its group, columns
// of series may still fit: then they answer, as they do with memory to spare.
func TestMemory_sideBySide(t *testing.T) {
	const series = 2000
	var lines []string
	for i := range series {
		lines = append(lines, fmt.Sprintf("sparse %d %d host=h%d", 1356998400+i%24*3600+i%11*300, i, i))
	}
	ask := func(memory string) answer {
		b := open(t, func(c *gateway.Config) { c.Memory = memory })
		b.Put(lines...)
		const question = "/api/query?start=1356998400&end=1357084799&m=sum:5m-avg:sparse%7Bhost=*%7D"
		if a := b.Get(question + "&explain=true"); !strings.Contains(a.Body, "side by side") {
			t.Fatalf("%.500s: the hours are not read side by side, so this tests nothing", a.Body)
		}
		a := b.Get(question)
		b.Settled()
		return a
	}
	small, large := ask("64MiB"), ask("4GiB")
	if large.Status != 200 || strings.Count(large.Body, `"dps":{"`) != series {
		t.Fatalf("with memory to spare: %d, %d series, want 200 and %d",
			large.Status, strings.Count(large.Body, `"dps":{"`), series)
	}
	if small.Status != 200 || small.Body != large.Body {
		t.Errorf("with 64 MiB: %d, %.300s, want the same answer", small.Status, small.Body)
	}
}

// Queries that could each be answered alone are all answered when they come at once, though their
// memory together is many times what there is: those that are refused give back what they hold and
// try again in turn.
func TestMemory_manyAtOnce(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.Memory = "64MiB" })
	var lines []string
	for i := range 12_000 {
		lines = append(lines, fmt.Sprintf("adv.m %d %d host=h%d zone=z%d", 1356998400+i%24*3600, i, i/24, i/24%7))
	}
	b.Put(lines...)
	for _, by := range []string{"host", "zone"} {
		question := "/api/query?start=1356998400&end=1357084799&m=sum:10m-avg:adv.m%7B" + by + "=*%7D"
		want := b.Get(question)
		if want.Status != 200 {
			t.Fatalf("%s: one alone: %d %.300s", by, want.Status, want.Body)
		}
		var group sync.WaitGroup
		for range 30 {
			group.Go(func() {
				a, err := b.Try(t.Context(), "GET", question, nil)
				if err != nil || a.Status != 200 || a.Body != want.Body {
					t.Errorf("%s: %d %.300s, %v; want the answer that one gets alone", by, a.Status, a.Body, err)
				}
			})
		}
		group.Wait()
		b.Settled()
	}
}
