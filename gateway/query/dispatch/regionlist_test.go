package dispatch

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/rpc/wire"
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

// Regions are listed for the first of several runs, and again once a part has failed. A list is of all regions, and a
// plan gets those of its rows.
func TestRun_listsRegionsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := table(true)
		m.Borders = [][]byte{s.AppendRangeKey(nil, 0, metric, base+3600), s.AppendRangeKey(nil, 0, metric, base+2*3600)}
		l, stopped := &listing{Store: m}, false
		cfg := quiet(m, nil, &scripted{name: "s", store: m, fault: func(context.Context, int) error {
			if stopped {
				return wire.ErrServer
			}
			return nil
		}})
		cfg.Store = l
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
		}
		run(base, base+3600, 1)
		run(base, base+6*3600, 1)
		stopped = true
		run(base, base+6*3600, 1) // the parts fail at the server and are executed here
		run(base, base+6*3600, 2)
	})
}

// A list that is some seconds old will do for a query, and is made new next to it; with one that is older than a minute
// no query begins.
func TestRun_renewsRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, func(m *operatortest.Store) store.Reader { return m })
		l := &slowListing{listing: listing{Store: f.servers[0].store.(*operatortest.Store)}}
		f.e.cfg.Store = l
		f.takes = func(int) time.Duration { return 0 }
		run := func(what string, most time.Duration, want int64) {
			t.Helper()
			if took, _ := f.run(); took > most {
				t.Errorf("%s: took %v, want %v at most", what, took, most)
			}
			time.Sleep(slowList + time.Millisecond) // until the list is made
			if got := l.listed.Load(); got != want {
				t.Errorf("%s: regions listed %d times, want %d", what, got, want)
			}
		}
		run("no list", slowList, 1)
		run("a new list", 0, 1)
		time.Sleep(regionsFor)
		run("an old list", 0, 2)
		run("a new one again", 0, 2)
		l.fails.Store(true)
		time.Sleep(regionsFor)
		run("cannot list", 0, 3)
		run("cannot list again", 0, 4)
		l.fails.Store(false)
		time.Sleep(regionsAtMost)
		run("too old a list", slowList, 5)
		time.Sleep(2 * maxBackoff)
	})
}

// slowListing takes long to list regions, and may fail.
type slowListing struct {
	listing
	fails atomic.Bool
}

const slowList = time.Second

func (*slowListing) Features() store.Features { return store.Features{} }

func (l *slowListing) Regions(ctx context.Context, table string, start, stop []byte) ([]store.Region, error) {
	time.Sleep(slowList)
	regions, err := l.listing.Regions(ctx, table, start, stop)
	if l.fails.Load() {
		err = store.ErrUnavailable
	}
	return regions, err
}

func TestRegionLists(t *testing.T) {
	var l regionLists
	now := time.Unix(1000, 0)
	one := []store.Region{{Stop: []byte("b"), Server: "x"}, {Start: []byte("b"), Stop: []byte("c"), Server: "y"},
		{Start: []byte("c"), Server: "z"}}
	l.set("t", one, now)
	f := func(table string, at time.Time, want bool) {
		t.Helper()
		if got, _, ok := l.get(table, at); ok != want || ok && len(got) != len(one) {
			t.Errorf("table %s at %v: %v, %t, want %t", table, at, got, ok, want)
		}
	}
	renews := func(at time.Time, want bool) {
		t.Helper()
		if _, renew, ok := l.get("t", at); renew != want || !ok {
			t.Errorf("at %v: renew %t, known %t, want %t, true", at, renew, ok, want)
		}
	}
	f("t", now, true)
	f("other", now, false)
	renews(now.Add(regionsFor-1), false)
	renews(now.Add(regionsFor), true)
	renews(now.Add(regionsFor), false) // somebody does
	l.failed("other")
	renews(now.Add(regionsFor), false)
	l.failed("t")
	renews(now.Add(regionsFor), true)
	f("t", now.Add(regionsAtMost-1), true)
	f("t", now.Add(regionsAtMost), false)
	l.set("t", one, now.Add(regionsFor))
	renews(now.Add(2*regionsFor-1), false)
	renews(now.Add(2*regionsFor), true)
	l.set("u", one, now)
	f("t", now, true)
	l.forget("t")
	f("t", now, false)
	f("u", now, true)
	for i := range maxRegionTables {
		l.set(fmt.Sprint(i), one, now)
	}
	if len(l.tables) != maxRegionTables {
		t.Errorf("the regions of %d tables are known, want %d", len(l.tables), maxRegionTables)
	}

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
