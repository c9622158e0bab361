package retention_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/gateway/admin/retention"
	"downpour/gateway/admin/retention/rules"
	"downpour/pushdown/lease"
	"downpour/pushdown/store/hbase/hbasefake"
)

// refusing answers writes with an exception from some call on, until it is lifted.
type refusing struct {
	mu     sync.Mutex
	class  string
	first  int // call of writes, from 0, that is refused
	calls  int
	leases bool // writes of leases are refused, too
	begun  bool
	lifted bool
}

// fault is a hook of the fake.
func (r *refusing) fault(c hbasefake.Call) hbasefake.Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Gets have no cells.
	if c.Method == "Multi" && c.Cells > 0 {
		r.begun = r.begun || r.calls == r.first
		r.calls++
	}
	switch {
	case !r.begun || r.lifted:
	case c.Method == "Multi" && c.Cells > 0:
		return hbasefake.Fault{Kind: hbasefake.RefuseActions, Exception: r.class}
	case c.Method == "Mutate" && r.leases:
		return hbasefake.Fault{Kind: hbasefake.Refuse, Exception: r.class}
	}
	return hbasefake.Fault{}
}

func (r *refusing) lift() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lifted = true
}

// TestWorker_noWrites: for two hours the servers refuse deletions, from the middle of a run on. The log says
// it, no younger row is gone, and a worker that begins meanwhile deletes the rest once it can.
func TestWorker_noWrites(t *testing.T) {
	for _, r := range []*refusing{
		{class: "org.apache.hadoop.hbase.RegionTooBusyException"},
		{class: "org.apache.hadoop.hbase.NotServingRegionException", first: 1},
		{class: "org.apache.hadoop.hbase.quotas.SpaceLimitingException", leases: true},
		{class: "org.apache.hadoop.hbase.RegionTooBusyException", first: 1, leases: true},
	} {
		synctest.Test(t, func(t *testing.T) { retainLater(t, r) })
	}
}

func retainLater(t *testing.T, r *refusing) {
	what := fmt.Sprintf("%s, leases %v, from call %d on", r.class, r.leases, r.first)
	w := onHBase(t, rand.New(rand.NewPCG(5, 5)))
	began := time.Now()
	w.job.Rules, w.job.Rate = parse(t, ". 2d"), 100
	w.job.Now = func() time.Time { return time.Unix(now, 0).Add(time.Since(began)) }
	for i := range 300 {
		w.put("tsdb", i%4, (now-int64(5+i%7)*86_400)/hour*hour, i)
		w.put("tsdb", i%4, now/hour*hour, i)
	}
	want, all := w.want("tsdb", rules.Hour, ""), w.keys("tsdb")
	log := new(text)
	start := func() (stop func()) {
		job := *w.job
		worker := &retention.Worker{Job: &job, Turns: retention.NewLeased(w.store, "state"), Log: slog.New(slog.NewTextHandler(log, nil))}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			worker.Run(ctx)
		}()
		return func() {
			cancel()
			<-done
		}
	}

	w.fake.SetHook(r.fault)
	stop := start()
	time.Sleep(time.Hour)
	stop()
	if said := log.take(); !strings.Contains(said, r.class) || strings.Count(said, "\n") > 200 {
		t.Errorf("%s: the log says %.500q, in %d lines", what, said, strings.Count(said, "\n"))
	}
	left := w.keys("tsdb")
	if r.first == 0 && len(left) != len(all) || r.first > 0 && (len(left) == len(all) || len(left) == len(want)) {
		t.Errorf("%s: %d of %d rows are left", what, len(left), len(all))
	}
	stop = start()
	time.Sleep(time.Hour)
	r.lift()
	time.Sleep(2 * time.Hour)
	stop()
	if d := cmp.Diff(want, w.keys("tsdb")); d != "" {
		t.Errorf("%s: -want +got\n%s", what, d)
	}

	// The next worker does not wait for a lease that nobody has.
	k := &lease.Keeper{Store: w.store, Table: "state", Holder: "next"}
	l, ok, err := k.Try(t.Context(), "retention")
	if !ok || err != nil {
		t.Fatalf("the lease: %v, %v", ok, err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
