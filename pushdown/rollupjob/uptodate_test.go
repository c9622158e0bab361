package rollupjob

import (
	"testing"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
	"downpour/pushdown/store/storetest"
)

// Look finds nothing to do only while all sealed hours are proven, and needs few calls: for a
// metric in twenty salt buckets, one for the records and two for each bucket.
func TestLook(t *testing.T) {
	w := newWorld(t)
	c := &storetest.Counting{Store: w}
	w.job.Schema.SaltWidth, w.job.Schema.SaltBuckets = 1, 20
	w.job.Store = c
	put := func(at int64, host byte) {
		t.Helper()
		m := store.Mutation{
			Row:       w.job.Schema.AppendRowKey(nil, metric, uint32(at-at%hour), []byte{0, 0, 1, 0, 0, host}),
			Family:    encoding.FamilyData,
			Qualifier: []byte{byte(at % hour >> 4), byte(at % hour << 4)},
			Value:     []byte{1},
		}
		if err := w.Apply(t.Context(), "tsdb", []store.Mutation{m}); err != nil {
			t.Fatal(err)
		}
	}
	for at := int64(midnight); at < midnight+3*day; at += hour {
		for host := range byte(40) {
			put(at, host)
		}
	}
	look := func(what string, want bool) (asked int64) {
		t.Helper()
		before := c.Asked.Load()
		counts, proven, err := w.job.UpToDate(t.Context(), metric, midnight, midnight+3*day)
		if err != nil || proven != want || (counts.Proven > 0) != want {
			t.Errorf("%s: got %+v, %v, %v, want proven %v", what, counts, proven, err, want)
		}
		return c.Asked.Load() - before
	}

	if asked := look("nothing is rolled up", false); asked != 1 {
		t.Errorf("%d calls where nothing is recorded, want 1", asked)
	}
	w.run()
	if asked := look("all is rolled up", true); asked > 1+2*20 {
		t.Errorf("%d calls, want 41 at most", asked)
	}
	before := c.Asked.Load()
	w.run()
	t.Logf("Roll and Prove ask for %d to find out the same", c.Asked.Load()-before)

	for what, change := range map[string]func(){
		"a late point":   func() { put(midnight+day+60, 3) },
		"another rollup": func() { changeRollup(t, w) },
		"an hour more": func() {
			now := w.job.Now()
			w.job.Now = func() time.Time { return now.Add(time.Hour) }
		},
		"another setting": func() { w.job.FixDuplicates = !w.job.FixDuplicates },
	} {
		change()
		look(what, false)
		w.run()
		w.run() // the first one may find that a table has lost its values
		look(what+", rolled up", true)
	}

	// Rollups that are not yet read back are left to Prove.
	put(midnight+60, 3)
	if _, err := w.job.Roll(t.Context(), metric, midnight, midnight+3*day); err != nil {
		t.Fatal(err)
	}
	look("not read back", false)
}

// changeRollup writes over a cell of a table of rollups.
func changeRollup(t *testing.T, w *world) {
	t.Helper()
	for row, err := range store.Rows(t.Context(), w.Store, store.Scan{Table: "r1h", Family: encoding.FamilyData}) {
		if err != nil {
			t.Fatal(err)
		}
		m := store.Mutation{
			Row:       append([]byte(nil), row.Key...),
			Family:    encoding.FamilyData,
			Qualifier: row.Cells[0].Clone().Qualifier,
			Value:     []byte{9},
		}
		if err := w.Apply(t.Context(), "r1h", []store.Mutation{m}); err != nil {
			t.Fatal(err)
		}
		break
	}
}
