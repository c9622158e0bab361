package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"downpour/gateway"
	"downpour/pushdown/process/heap/heaptest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
)

// slowPut is a store whose writes of points wait until a name is about to be deleted, for 300 ms at
// most.
type slowPut struct {
	gateway.Store
	once    sync.Once
	gone    sync.Once
	putting chan struct{} // closed when points have come
	deletes chan struct{} // closed when a mapping is about to be deleted
}

func (*slowPut) Features() store.Features { return store.Features{} }

func (s *slowPut) Apply(ctx context.Context, table string, m []store.Mutation) error {
	switch {
	case table == "tsdb":
		s.once.Do(func() { close(s.putting) })
		select {
		case <-s.deletes: // a deletion that does not wait gets ahead of the points
			<-time.After(50 * time.Millisecond)
		case <-time.After(300 * time.Millisecond):
		}
	case table == "tsdb-uid" && m[0].Kind == store.DeleteCell:
		s.gone.Do(func() { close(s.deletes) })
	}
	return s.Store.Apply(ctx, table, m)
}

// The deletion of a name waits for points that are being written under it, and is then refused
// because of them: for names of all kinds, on both stores, for lines, small and large requests.
//
//fault:names-changed-without-waiting-for-rows >= before => >= before || true
func TestDelete_waitsForPuts(t *testing.T) {
	doors := map[string]func(b *bench) string{
		"lines": func(b *bench) string {
			c := b.dial()
			fmt.Fprintln(c, "put m 1356998400 1 k=v")
			return c.rest()
		},
		"a point":  func(b *bench) string { return b.post("/api/put", raceBody(1)).body },
		"a bundle": func(b *bench) string { return b.post("/api/put", raceBody(600)).body },
	}
	for where, open := range map[string]func(*testing.T) (*gateway.Config, gateway.Store){
		"embedded": func(t *testing.T) (*gateway.Config, gateway.Store) { cfg := config(0); return cfg, memoryStore(t, cfg) },
		"HBase":    fakeHBase,
	} {
		for kind, name := range map[string]string{"metrics": "m", "tagk": "k", "tagv": "v"} {
			for door, put := range doors {
				t.Run(where+"/"+kind+"/"+door, func(t *testing.T) {
					t.Parallel() // most of the time is spent waiting
					cfg, st := open(t)
					slow := &slowPut{Store: st, putting: make(chan struct{}), deletes: make(chan struct{})}
					b := &bench{T: t, cfg: cfg, g: start(t, cfg, slow)}
					b.post("/api/uid/assign", `{"metric":["m"],"tagk":["k"],"tagv":["v"]}`)
					var work sync.WaitGroup
					work.Go(func() {
						if said := put(b); said != "" {
							t.Errorf("put: %s", said)
						}
					})
					<-slow.putting
					a := b.post("/api/tools/delete", fmt.Sprintf(`{"kind":%q,"name":%q}`, kind, name))
					work.Wait()
					b.refused(a, 409, "has data")
					if a := b.get("/api/query?start=1356998400&end=1356998401&m=none:m"); !strings.Contains(a.body, `"tags":{"k":"v"}`) || !strings.Contains(a.body, `"1356998400":`) {
						t.Errorf("got %d %s, want the points under their names", a.status, a.body)
					}
				})
			}
		}
	}
}

func raceBody(points int) string {
	all := make([]string, points)
	for i := range all {
		all[i] = fmt.Sprintf(`{"metric":"m","timestamp":%d,"value":%d,"tags":{"k":"v"}}`, 1356998400+i, i)
	}
	return "[" + strings.Join(all, ",") + "]"
}

// fakeHBase returns a store with all tables on a simulated HBase.
func fakeHBase(t *testing.T) (*gateway.Config, gateway.Store) {
	cluster, err := hbasefake.Start(hbasefake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	for name, families := range map[string][]string{"tsdb": {"t"}, "tsdb-uid": {"id", "name"}, "tsdb-meta": {"name"}, "tsdb-tree": {"t"}, "downpour-state": {"s"}} {
		cluster.CreateTable(name, families)
	}
	cfg, st := hbaseConfig(t, cluster.Address())
	cfg.AllowDelete, cfg.KnownWithin = true, time.Millisecond
	return cfg, st
}

// Spellings of a put with very many blanks, and names that are too long, are not kept in memory.
func TestPut_longSpellings(t *testing.T) {
	b := open(t, func(cfg *gateway.Config) { cfg.LimitName = 1024 })
	const blanks, names = 10, 200
	b.put("m 1356998400 1 k=v")
	before := inUse()
	for i := range blanks {
		body := `{"metric":"m","timestamp":1356998400,"value":1,"tags":{"k":` + strings.Repeat(" ", 8_000_000-i) + `"v"}}`
		if a := b.post("/api/put", body); a.status != http.StatusNoContent {
			t.Fatalf("put: got %d %.200s, want 204", a.status, a.body)
		}
	}
	for i := range names {
		long := fmt.Sprintf("%s%d", strings.Repeat("n", 30_000), i)
		a := b.post("/api/put?details", fmt.Sprintf(`{"metric":"m","timestamp":1356998400,"value":1,"tags":{"k":%q}}`, long))
		if a.status != http.StatusBadRequest || !strings.Contains(a.body, "DOWNPOUR_LIMIT_NAME") {
			t.Fatalf("put of a long name: got %d %.200s, want 400 that names DOWNPOUR_LIMIT_NAME", a.status, a.body)
		}
	}
	grown := inUse() - before
	t.Logf("%d KiB are held", grown>>10)
	if grown > 16<<20 {
		t.Errorf("%d MiB are held, want 16 at most", grown>>20)
	}
	if a := b.post("/api/uid/assign", fmt.Sprintf(`{"metric":[%q]}`, strings.Repeat("n", 1025))); a.status != http.StatusBadRequest || !strings.Contains(a.body, "at most 1024") {
		t.Errorf("assigned: %d %.200s", a.status, a.body)
	}
	b.refused(b.post("/api/uid/rename", `{"metric":"m","tagk":"a","name":"n"}`), http.StatusBadRequest, "got those of a metric and a tagk")
	b.refused(b.get("/api/uid/rename?tagv=b&metric=m&name=n"), http.StatusBadRequest, "got those of a metric and a tagv")
	if a := b.post("/api/uid/rename", fmt.Sprintf(`{"metric":"m","name":%q}`, strings.Repeat("n", 1025))); a.status != http.StatusBadRequest || !strings.Contains(a.body, "at most 1024") {
		t.Errorf("renamed: %d %.200s", a.status, a.body)
	}
	if a := b.get("/api/query?start=1356998400&end=1356998401&m=sum:m"); !strings.Contains(a.body, `"1356998400":1`) {
		t.Errorf("got %d %s, want the point", a.status, a.body)
	}
}

// inUse returns the bytes in use on the heap, without those of idle connections.
func inUse() int64 {
	http.DefaultClient.CloseIdleConnections()
	return heaptest.InUse()
}

// A request to /api/query/last may have as many sub-queries as a query: 64 by default.
func TestQueryLast_subQueries(t *testing.T) {
	b := open(t, nil)
	b.put(fmt.Sprintf("m %d 1 k=v", time.Now().Unix()))
	body := func(n int) string {
		return `{"queries":[` + strings.TrimSuffix(strings.Repeat(`{"metric":"m"},`, n), ",") + `]}`
	}
	if a := b.post("/api/query/last", body(64)); a.status != http.StatusOK || strings.Count(a.body, `"value":"1"`) != 64 {
		t.Errorf("64: %d %.300s", a.status, a.body)
	}
	b.refused(b.post("/api/query/last", body(65)), http.StatusRequestEntityTooLarge, "Too many sub queries: 65, at most 64")
	b.refused(b.get("/api/query/last?timeseries=m"+strings.Repeat("&tsuids=000001000001000001", 64)), http.StatusRequestEntityTooLarge, "Too many sub queries: 65, at most 64")
}
