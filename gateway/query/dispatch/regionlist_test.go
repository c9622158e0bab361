package dispatch

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/rpc/server"
	"downpour/pushdown/store"
)

// listing counts how often regions are listed.
type listing struct {
	*operatortest.Store
	listed atomic.Int64
}

func (*listing) Features() store.Features { return store.Features{} }

func (l *listing) Regions(ctx context.Context, table string, start, stop []byte) ([]store.Region, error) {
	l.listed.Add(1)
	return l.Store.Regions(ctx, table, start, stop)
}

// Regions are listed for the first of several runs, and again once a part has failed or the
// list is old. A list is of all regions, and a plan gets those of its rows.
func TestRun_listsRegionsOnce(t *testing.T) {
	m, s := table(true)
	m.Borders = [][]byte{s.AppendRangeKey(nil, 0, metric, base+3600), s.AppendRangeKey(nil, 0, metric, base+2*3600)}
	l := &listing{Store: m}
	c, stop := flightServer(t, m, server.Config{Schema: s})
	defer c.Close()
	cfg := quiet(m, nil)
	cfg.Store, cfg.Servers, cfg.HelloTimeout = l, []Server{c}, patience
	e := New(cfg)
	run := func(from, to int64, want int64) {
		t.Helper()
		plan := operatortest.Plan(s, metric, from, to)
		parts := 0
		if _, err := e.Run(t.Context(), &plan, Options{},
			func(scanplan.KeyRange, []batch.Record) error { parts++; return nil }); err != nil {
			t.Fatal(err)
		}
		if got := l.listed.Load(); got != want || parts == 0 {
			t.Errorf("regions listed %d times, want %d; %d parts", got, want, parts)
		}
		for table, list := range e.regions.tables { // on a busy machine the next run may come when it is old
			list.at = time.Now().Add(time.Hour)
			e.regions.tables[table] = list
		}
	}
	run(base, base+3600, 1)
	run(base, base+6*3600, 1)
	stop()
	run(base, base+6*3600, 1) // the parts fail at the server and are executed here
	run(base, base+6*3600, 2)
}

func TestRegionLists(t *testing.T) {
	var l regionLists
	now := time.Unix(1000, 0)
	one := []store.Region{{Stop: []byte("b"), Server: "x"}, {Start: []byte("b"), Stop: []byte("c"), Server: "y"},
		{Start: []byte("c"), Server: "z"}}
	l.set("t", one, now)
	f := func(table string, at time.Time, want bool) {
		t.Helper()
		if got, ok := l.get(table, at); ok != want || ok && len(got) != len(one) {
			t.Errorf("table %s at %v: %v, %t, want %t", table, at, got, ok, want)
		}
	}
	f("t", now, true)
	f("other", now, false)
	f("t", now.Add(regionsFor-1), true)
	f("t", now.Add(regionsFor), false)
	l.forget("t")
	f("t", now, false)

	servers := func(start, stop string) (all string) {
		for _, r := range overlapping(one, []byte(start), []byte(stop)) {
			all += r.Server
		}
		return all
	}
	for _, c := range [][3]string{{"", "", "xyz"}, {"a", "b", "x"}, {"b", "c", "y"}, {"b", "", "yz"}, {"c", "d", "z"},
		{"", "a", "x"}, {"aa", "ba", "xy"}} {
		if got := servers(c[0], c[1]); got != c[2] {
			t.Errorf("[%q, %q): regions of %s, want %s", c[0], c[1], got, c[2])
		}
	}
}
