package extra_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store"
)

// written counts what is written to a store.
type written struct {
	*gatewaytest.Faulty
	n atomic.Int64
}

func (w *written) Features() store.Features { return w.Faulty.Features() }

func (w *written) Apply(ctx context.Context, table string, m []store.Mutation) error {
	w.n.Add(1)
	return w.Faulty.Apply(ctx, table, m)
}

func (w *written) Increment(ctx context.Context, table string, cell store.CellKey, delta int64) (int64, error) {
	w.n.Add(1)
	return w.Faulty.Increment(ctx, table, cell, delta)
}

func (w *written) CompareAndPut(
	ctx context.Context, table string, cell store.CellKey, expected, value []byte,
) (bool, error) {
	w.n.Add(1)
	return w.Faulty.CompareAndPut(ctx, table, cell, expected, value)
}

// openForAll starts a gateway without tokens that may delete, and returns it with the count of
// calls that write to its store.
func openForAll(t *testing.T, origins ...string) (*bench, *atomic.Int64) {
	t.Helper()
	cfg := config(0)
	cfg.AllowDelete, cfg.AllowOrigins = true, origins
	// Meta data of a put is written later, and would be counted for another request.
	cfg.MetaTracking, cfg.MetaIncrementing, cfg.MetaRealtimeTS, cfg.MetaRealtimeUID = "false", "false", "false", "false"
	st := gatewaytest.NewFaulty(memoryStore(t, cfg))
	w := &written{Faulty: st}
	b := serve(t, cfg, w)
	b.Put("m 1356998400 1 host=a")
	return b, &w.n
}

// changes reports whether a request may change data: by the table of routes, or because it deletes
// by method_override or by its body, which the table does not show.
func (k knock) changes() bool {
	verb := map[string]string{"HEAD": "GET"}[k.method]
	if verb == "" {
		verb = k.method
	}
	return k.verb == "OVERRIDE" || k.verb == "BODY" || !slices.Contains(k.reads, verb)
}

// The table of routes says which verbs of a route only read. Such requests write nothing and need
// no scope but to read; requests that are known to change something are not among them.
//
//fault:link-drops-caches NoVerb => Get
func TestDoors_reads(t *testing.T) {
	b, writes := openForAll(t)
	reading, changing := 0, 0
	for _, k := range knocks(t) {
		before := writes.Load()
		a := b.Do(k.method, "/"+k.path, strings.NewReader(k.body))
		n := writes.Load() - before
		if k.changes() {
			changing++
			continue
		}
		reading++
		if n > 0 {
			t.Errorf("%s %s only reads by the table of routes, and has written %d times: %d %.100s",
				k.verb, k.path, n, a.Status, a.Body)
		}
		if k.more != 0 {
			t.Errorf("%s %s only reads by the table of routes, and needs a scope that readers lack", k.verb, k.path)
		}
	}
	routes := routesOf(t)
	for _, name := range []string{
		"POST api/put", "GET api/dropcaches", "DELETE api/dropcaches", "GET dropcaches", "GET api/uid/assign",
		"GET api/uid/rename",
	} {
		verb, route, _ := strings.Cut(name, " ")
		if !(knock{verb: verb, method: verb, route: route, reads: routes[route].Reads}).changes() {
			t.Errorf("%s only reads by the table of routes, and is known to change something", name)
		}
	}
	if reading < 30 || changing < 100 || writes.Load() == 0 {
		t.Errorf("%d requests read and %d change, with %d writes; want 30, 100 and 1 at least",
			reading, changing, writes.Load())
	}
	t.Logf("%d requests read and %d change", reading, changing)
}

// No page of another site changes anything, by any route and verb; of its requests only links to
// what only reads are answered. The gateway's own pages, pages of listed origins and clients that
// are no browsers are not refused.
//
//fault:link-changes-data origin.Change => origin.Read
func TestDoors_pages(t *testing.T) {
	t.Parallel()
	const evil, ok = "http://evil.example", "http://ok.example"
	b, writes := openForAll(t)
	listed, _ := openForAll(t, ok)
	// The log of /logs has these words, too.
	refused := func(a answer) bool {
		return strings.HasPrefix(a.Body, `{"error":`) && strings.Contains(a.Body, "CORS domain not allowed")
	}

	link := []string{"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Sec-Fetch-Site"}
	foreign := map[string][]string{
		"a link":                 append(link[:5:5], "cross-site"),
		"a link of the site":     append(link[:5:5], "same-site"),
		"a link with a referer":  append(link[:5:5], "cross-site", "Referer", evil+"/page"),
		"an image":               {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"},
		"a script":               {"Origin", evil, "Sec-Fetch-Site", "cross-site"},
		"an old browser":         {"Origin", evil},
		"a file":                 {"Origin", "null"},
		"a word yet to be known": append(link[:5:5], "elsewhere"),
	}
	let := map[*bench]map[string][]string{
		b: {
			"no browser":     nil,
			"the address":    append(link[:5:5], "none"),
			"our link":       append(link[:5:5], "same-origin"),
			"our script":     {"Origin", "http://" + b.Address(), "Sec-Fetch-Site", "same-origin"},
			"an old browser": {"Origin", "http://" + b.Address()},
		},
		listed: {
			"a listed script": {"Origin", ok, "Sec-Fetch-Site", "cross-site"},
			"a listed link":   append(link[:5:5], "cross-site", "Referer", ok+"/page"),
		},
	}
	for _, k := range knocks(t) {
		if k.route == "api/ws" { // the socket has its own rules, see TestDoors_origins
			continue
		}
		for page, header := range foreign {
			before := writes.Load()
			a := b.Do(k.method, "/"+k.path, strings.NewReader(k.body), header...)
			mayRead := !k.changes() && k.method == http.MethodGet && slices.Contains(header, "navigate")
			switch head := k.method == http.MethodHead; {
			case mayRead && refused(a):
				t.Errorf("%s %s by %s is refused: %d %.100s", k.verb, k.path, page, a.Status, a.Body)
			case !mayRead && (a.Status != http.StatusForbidden || !head && !refused(a)):
				t.Errorf("%s %s by %s: %d %.100s, want it refused", k.verb, k.path, page, a.Status, a.Body)
			case writes.Load() != before:
				t.Errorf("%s %s by %s has written", k.verb, k.path, page)
			}
		}
		for b, pages := range let {
			for page, header := range pages {
				if a := b.Do(k.method, "/"+k.path, strings.NewReader(k.body), header...); refused(a) {
					t.Errorf("%s %s by %s is refused: %d %.100s", k.verb, k.path, page, a.Status, a.Body)
				}
			}
		}
	}
}
