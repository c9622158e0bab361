package extra_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store"
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
			c := b.Dial()
			fmt.Fprintln(c, "put m 1356998400 1 k=v")
			return c.Rest()
		},
		"a point":  func(b *bench) string { return b.Post("/api/put", raceBody(1)).Body },
		"a bundle": func(b *bench) string { return b.Post("/api/put", raceBody(600)).Body },
	}
	for where, open := range map[string]func(*testing.T) (*gateway.Config, gateway.Store){
		"embedded": func(t *testing.T) (*gateway.Config, gateway.Store) {
			cfg := config(0)
			return cfg, memoryStore(t, cfg)
		},
		"HBase": gatewaytest.FakeHBase,
	} {
		for kind, name := range map[string]string{"metrics": "m", "tagk": "k", "tagv": "v"} {
			for door, put := range doors {
				t.Run(where+"/"+kind+"/"+door, func(t *testing.T) {
					t.Parallel() // most of the time is spent waiting
					cfg, st := open(t)
					slow := &slowPut{Store: st, putting: make(chan struct{}), deletes: make(chan struct{})}
					b := serve(t, cfg, slow)
					b.Post("/api/uid/assign", `{"metric":["m"],"tagk":["k"],"tagv":["v"]}`)
					var work sync.WaitGroup
					work.Go(func() {
						if said := put(b); said != "" {
							t.Errorf("put: %s", said)
						}
					})
					<-slow.putting
					a := b.Post("/api/tools/delete", fmt.Sprintf(`{"kind":%q,"name":%q}`, kind, name))
					work.Wait()
					b.Refused(a, 409, "has data")
					a = b.Get("/api/query?start=1356998400&end=1356998401&m=none:m")
					if !strings.Contains(a.Body, `"tags":{"k":"v"}`) || !strings.Contains(a.Body, `"1356998400":`) {
						t.Errorf("got %d %s, want the points under their names", a.Status, a.Body)
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
