package retention_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/gateway/extra/retention"
	"downpour/gateway/extra/retention/rules"
	"downpour/pushdown/lease"
	"downpour/pushdown/process/logtest"
	"downpour/pushdown/store/hbase/hbasefake"
)

// TestWorker_noWrites: for two hours the servers refuse deletions, from the middle of a run on. The log says
// so, no younger row is gone, and a worker that begins in the meantime deletes the rest once it can.
func TestWorker_noWrites(t *testing.T) {
	for _, r := range []*hbasefake.RefusedWrites{
		{Exception: "org.apache.hadoop.hbase.RegionTooBusyException"},
		{Exception: "org.apache.hadoop.hbase.NotServingRegionException", First: 1},
		{Exception: "org.apache.hadoop.hbase.quotas.SpaceLimitingException", Single: true},
		{Exception: "org.apache.hadoop.hbase.RegionTooBusyException", First: 1, Single: true},
	} {
		synctest.Test(t, func(t *testing.T) { retainLater(t, r) })
	}
}

func retainLater(t *testing.T, r *hbasefake.RefusedWrites) {
	what := fmt.Sprintf("%s, leases %v, from call %d on", r.Exception, r.Single, r.First)
	w := onHBase(t, rand.New(rand.NewPCG(5, 5)))
	began := time.Now()
	w.job.Rules, w.job.Rate = parse(t, ". 2d"), 100
	w.job.Now = func() time.Time { return time.Unix(now, 0).Add(time.Since(began)) }
	for i := range 300 {
		w.put("tsdb", i%4, (now-int64(5+i%7)*86_400)/hour*hour, i)
		w.put("tsdb", i%4, now/hour*hour, i)
	}
	want, all := w.want("tsdb", rules.Hour, ""), w.keys("tsdb")
	log := new(logtest.Log)
	start := func() (stop func()) { return w.startWorker(retention.NewLeased(w.store, "state", "tsdb"), log) }

	w.fake.SetHook(r.Fault)
	stop := start()
	time.Sleep(time.Hour)
	stop()
	if said := log.Take(); !strings.Contains(said, r.Exception) || strings.Count(said, "\n") > 200 {
		t.Errorf("%s: the log says %.500q, in %d lines", what, said, strings.Count(said, "\n"))
	}
	left := w.keys("tsdb")
	if r.First == 0 && len(left) != len(all) || r.First > 0 && (len(left) == len(all) || len(left) == len(want)) {
		t.Errorf("%s: %d of %d rows are left", what, len(left), len(all))
	}
	stop = start()
	time.Sleep(time.Hour)
	r.Lift()
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
