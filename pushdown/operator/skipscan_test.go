package operator_test

import (
	"bytes"
	"context"
	"io"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open/opentest"
	"downpour/pushdown/store/pebble"
)

// reading is a store that returns all rows and ignores the filter.
type reading struct{ store.Reader }

func (reading) Features() store.Features { return store.Features{} }

func (r reading) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	s.Filter = store.RowFilter{}
	return r.Reader.Scan(ctx, s)
}

// changing is a table that is changed between two queries.
type changing struct {
	*operatortest.Store
	schema encoding.Schema
}

// put writes one point of a series that may or may not be there already.
func (c *changing) put(t *rapid.T) {
	hour := int64(base + 3600*rapid.IntRange(0, 3).Draw(t, "hour"))
	ms := (hour + rapid.Int64Range(0, 3599).Draw(t, "second")) * 1000
	q, value := operatortest.Encode(ms, encoding.IntValue(rapid.Int64Range(0, 9).Draw(t, "value")))
	qualifier := encoding.AppendQualifier(nil, q)
	key := c.schema.AppendRowKey(nil, metric, uint32(hour), c.schema.AppendTags(nil, drawSeries(t)))
	i, found := slices.BinarySearchFunc(c.Rows, key, func(r store.Row, k []byte) int { return bytes.Compare(r.Key, k) })
	if found {
		for j, cell := range c.Rows[i].Cells {
			if bytes.Equal(cell.Qualifier, qualifier) {
				c.Rows[i].Cells[j].Value = value
				return
			}
		}
	}
	// Nothing may rely on the timestamp of a cell: it may be the time of the data.
	c.Cell(key, qualifier, value, rapid.Int64Range(1, ms).Draw(t, "written"))
}

// drawSeries draws the tags of one of some hundreds of series.
func drawSeries(t *rapid.T) (pairs []encoding.TagPair) {
	for k := 1; k <= 4; k++ {
		if v := rapid.IntRange(0, 4).Draw(t, "tag"); v > 0 {
			pairs = append(pairs, operatortest.Tag(k, v))
		}
	}
	return pairs
}

// change writes late points and new series, and deletes rows.
func (c *changing) change(t *rapid.T) {
	for range rapid.IntRange(0, 12).Draw(t, "puts") {
		c.put(t)
	}
	for range rapid.IntRange(0, min(4, len(c.Rows))).Draw(t, "deletes") {
		i := rapid.IntRange(0, len(c.Rows)-1).Draw(t, "row")
		c.Rows = slices.Delete(c.Rows, i, i+1)
	}
}

// drawPlan draws a plan that wants some series.
func drawPlan(t *rapid.T, s encoding.Schema) scanplan.Plan {
	from := rapid.IntRange(0, 2).Draw(t, "from")
	to := rapid.IntRange(from+1, 4).Draw(t, "to")
	plan := operatortest.Plan(s, metric, base+3600*int64(from), base+3600*int64(to))
	for k := 1; k <= 4; k++ {
		op := rapid.SampledFrom([]string{"", "", "in", "in", "not in", "present"}).Draw(t, "predicate")
		p := scanplan.TagPredicate{
			TagK: operatortest.UID(k),
			Op:   map[string]scanplan.TagOp{"in": scanplan.In, "not in": scanplan.NotIn}[op],
		}
		if p.Op != scanplan.Present {
			values := rapid.SliceOfNDistinct(rapid.IntRange(1, 5), 1, 3, rapid.ID).Draw(t, "values")
			slices.Sort(values)
			for _, v := range values {
				p.Values = append(p.Values, operatortest.UID(v))
			}
		}
		if op != "" {
			plan.Tags = append(plan.Tags, p)
		}
	}
	plan.Exact = len(plan.Tags) > 0 && rapid.IntRange(0, 4).Draw(t, "exact") == 0
	return plan
}

// cutParts cuts a plan's ranges at a random key, as a region's border may.
func cutParts(t *rapid.T, plan scanplan.Plan) (all []*scanplan.Part) {
	for _, r := range plan.Ranges {
		s := plan.Schema
		border := slices.Concat(r.Start[:len(r.Start)-4], []byte{0, 0, 0, 0}, s.AppendTags(nil, drawSeries(t)))
		copy(border[len(r.Start)-4:],
			s.AppendRangeKey(nil, 0, metric,
				uint32(base+3600*rapid.IntRange(0, 3).Draw(t, "border")))[s.SaltWidth+s.MetricWidth:])
		if bytes.Compare(border, r.Start) <= 0 || bytes.Compare(border, r.Stop) >= 0 {
			all = append(all, &scanplan.Part{Plan: plan, Range: r})
			continue
		}
		all = append(all, &scanplan.Part{Plan: plan, Range: scanplan.KeyRange{Start: r.Start, Stop: border}},
			&scanplan.Part{Plan: plan, Range: scanplan.KeyRange{Start: border, Stop: r.Stop}})
	}
	return all
}

// Cached key prefixes never change an answer. Plans are executed again and again, while late
// points and new series of old hours are put and rows are deleted.
func TestSeek_changesBetweenAsks(t *testing.T) {
	sought, learned := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := encoding.DefaultSchema()
		if rapid.Bool().Draw(t, "salted") {
			s.SaltWidth, s.SaltBuckets = 1, 3
		}
		table := &changing{Store: &operatortest.Store{}, schema: s}
		cache := access.NewPrefixCache()
		plans := []scanplan.Plan{drawPlan(t, s), drawPlan(t, s), drawPlan(t, s)}
		for range rapid.IntRange(2, 8).Draw(t, "asks") {
			table.change(t)
			plan := rapid.SampledFrom(plans).Draw(t, "plan")
			walked := rapid.IntRange(0, 2).Draw(t, "much looked at") == 0
			for _, part := range cutParts(t, plan) {
				if walked {
					cache.Record(access.CacheKey(part),
						access.ScanCost{From: base, To: base + 4*3600, Ranges: 1, Scanned: 10_000})
				}
				want, _, err := read(t, reading{table}, part, operator.Options{})
				if err != nil {
					t.Fatal(err)
				}
				got, stats, err := read(t, table, part, operator.Options{Prefixes: cache})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("part %s to %s of %s: %s", part.Range.Start, part.Range.Stop, &part.Plan, diff)
				}
				sought += int(min(stats.Ranges, 1))
				learned += int(min(stats.Probes, 1))
			}
		}
	})
	t.Logf("%d parts sought, %d learned", sought, learned)
	if sought == 0 || learned == 0 {
		t.Errorf("%d parts read by skip scan, %d learned prefixes, want some of both", sought, learned)
	}
}

// embedded returns an embedded store with an empty table.
func embedded(t testing.TB) *pebble.Store {
	return opentest.Embedded(t, opentest.Table(operatortest.Table, encoding.FamilyData))
}

// centres writes 6 hours of some hosts (tag 3) in data centres (tag 2, which comes first in keys).
func centres(t testing.TB, st *pebble.Store, first, hosts, dcs int) {
	s := encoding.DefaultSchema()
	var all []store.Mutation
	for host := range hosts {
		tags := s.AppendTags(nil, []encoding.TagPair{operatortest.Tag(2, first+host%dcs), operatortest.Tag(3, 1+host)})
		for hour := range 6 {
			q, value := operatortest.Encode((base+3600*int64(hour))*1000, encoding.IntValue(int64(host)))
			all = append(all, store.Mutation{
				Row:       s.AppendRowKey(nil, metric, uint32(base+3600*hour), tags),
				Family:    encoding.FamilyData,
				Qualifier: encoding.AppendQualifier(nil, q),
				Value:     value,
			})
		}
	}
	if err := st.Apply(t.Context(), operatortest.Table, all); err != nil {
		t.Fatal(err)
	}
}

// A value of the rows' first tag is read by key ranges immediately, with any UID. One host of
// 1,000, after other tags, is read by skip scan from the second query on, and never without a
// cache.
func TestSeek_oneOfMany(t *testing.T) {
	st := embedded(t)
	centres(t, st, 1, 1000, 4)
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+6*3600)
	ask := func(name string, cache *access.PrefixCache, looked, probes int64, tags ...scanplan.TagPredicate) {
		t.Helper()
		plan.Tags = tags
		spans, stats, err := read(t, st, whole(plan), operator.Options{Prefixes: cache})
		if err != nil {
			t.Fatal(err)
		}
		if want := spanOf(operatortest.Tag(2, 2),
			operatortest.Tag(3, 18)); len(spans) == 0 || stats.Points != int64(6*len(spans)) ||
			len(spans[want].Raw.Time) != 6 {
			t.Errorf("%s: %d points of %d series, want 6 of each, and host 18 among them", name, stats.Points,
				len(spans))
		}
		if stats.RowsScanned > looked || stats.Probes != probes {
			t.Errorf("%s: %d rows looked at, %d probes, want at most %d and %d", name, stats.RowsScanned, stats.Probes,
				looked, probes)
		}
	}
	centre := scanplan.TagPredicate{
		TagK:   operatortest.UID(2),
		Op:     scanplan.In,
		Values: []encoding.UID{operatortest.UID(2)},
	}
	host := scanplan.TagPredicate{
		TagK:   operatortest.UID(3),
		Op:     scanplan.In,
		Values: []encoding.UID{operatortest.UID(18)},
	}
	ask("first tag", nil, 1500, 0, centre)
	cache := access.NewPrefixCache()
	ask("second tag, at first", cache, 6000, 0, host)
	ask("second tag, then", cache, 6, 6, host)
	ask("second tag, again", cache, 6, 0, host)
	ask("both", nil, 1500, 0, centre, host)
	ask("without a cache", nil, 6000, 0, host)
	ask("without a cache, again", nil, 6000, 0, host)
	explained := func(few bool, want string) {
		t.Helper()
		if a := operator.ChooseAccess(whole(plan), cache); a.Few != few || a.Reason != want {
			t.Errorf("%q, few %t, want %q", a.Reason, a.Few, want)
		}
	}
	explained(true, "60 ranges that can hold the wanted tags, known prefixes: 5; no row lay elsewhere")
	// The prefixes of new data centres are unknown: their rows are read, and from then on the store
	// rejects them itself.
	centres(t, st, 50, 500, 2)
	ask("new data centres", cache, 3006, 0, host)
	explained(false, "60 ranges that can hold the wanted tags, known prefixes: 5; key pattern of 1 tags and 1 values")
	// After the first learning, more than 4 wasteful scans must come before the next one.
	for range 4 {
		ask("not worth learning again yet", cache, 3018, 0, host)
	}
	ask("learned again", cache, 18, 8, host)
	explained(true, "84 ranges that can hold the wanted tags, known prefixes: 7; no row lay elsewhere")
}

// Of few rows that are named by key, dividing the work saves no time.
func TestChooseAccess_few(t *testing.T) {
	for hours, want := range map[int64]bool{1: true, 512: true, 513: false} {
		plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+hours*3600)
		plan.TSUIDs = []encoding.UID{encoding.UID(spanOf(operatortest.Tag(1, 1)))}
		if a := operator.ChooseAccess(whole(plan), nil); a.Few != want {
			t.Errorf("%d rows are few: %t, want %t: %s", hours, a.Few, want, a.Reason)
		}
	}
}

// All prefixes are learned, also those that begin with other prefixes and those that are whole
// keys. They are learned from an hour that has rows, even if that is not the part's middle one.
func TestSeek_learnsAllPrefixes(t *testing.T) {
	var all []operatortest.Series
	for _, tags := range [][]encoding.TagPair{
		{operatortest.Tag(1, 1)},
		{operatortest.Tag(1, 1), operatortest.Tag(2, 1)},
		{operatortest.Tag(1, 1), operatortest.Tag(2, 1), operatortest.Tag(4, 1)},
		{operatortest.Tag(1, 1), operatortest.Tag(3, 7), operatortest.Tag(4, 1)},
		{operatortest.Tag(1, 2), operatortest.Tag(4, 2)},
		{operatortest.Tag(1, 2), operatortest.Tag(4, 3)},
		{operatortest.Tag(4, 1), operatortest.Tag(5, 1)},
		{operatortest.Tag(5, 1)},
	} {
		all = append(all, series(operatortest.Every(base, base+3600, 600, identity), tags...))
	}
	m := table(all...)
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+24*3600)
	plan.Tags = []scanplan.TagPredicate{{
		TagK:   operatortest.UID(4),
		Op:     scanplan.In,
		Values: []encoding.UID{operatortest.UID(1)},
	}}
	cache := access.NewPrefixCache()
	cache.Record(access.CacheKey(whole(plan)), access.ScanCost{From: base, To: base + 24*3600, Scanned: 100_000})
	spans, _, err := read(t, m, whole(plan), operator.Options{Prefixes: cache})
	if err != nil || len(spans) != 3 {
		t.Errorf("%d series, %v, want 3", len(spans), err)
	}
	// The empty prefix; (1,1); (1,1)(2,1); (1,1)(3,7); (1,2).
	if known := cache.Lookup(access.CacheKey(whole(plan))); !known.Clean || len(known.Prefixes) != 1 ||
		known.Prefixes[0].Len() != 5 {
		t.Errorf("known is %+v, want 5 prefixes of one tag, clean", known)
	}
}

// If the store fails while prefixes are learned, the part is answered and no prefixes are known. They are learned
// sooner again than after a success.
func TestSeek_learningFails(t *testing.T) {
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+3600)
	plan.Tags = []scanplan.TagPredicate{{
		TagK:   operatortest.UID(3),
		Op:     scanplan.In,
		Values: []encoding.UID{operatortest.UID(1)},
	}}
	key := access.CacheKey(whole(plan))
	for n := range 4 { // the probe that fails; there are three
		m := table(series(operatortest.Every(base, base+3600, 600, identity), operatortest.Tag(2, 1),
			operatortest.Tag(3, 1)))
		cache := access.NewPrefixCache()
		wasteful := access.ScanCost{From: base, To: base + 3600, Scanned: 10_000}
		cache.Record(key, wasteful)
		calls := 0
		m.Fail = func(context.Context, int) error {
			if calls++; calls == n+1 && n < 3 {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
		spans, stats, err := read(t, m, whole(plan), operator.Options{Prefixes: cache})
		if err != nil || len(spans) != 1 || stats.Probes != int64(min(n+1, 3)) || m.Open.Load() != 0 {
			t.Errorf("probe %d fails: %d series, %d probes, %d scanners are open, %v, want one series after this probe",
				n, len(spans), stats.Probes, m.Open.Load(), err)
		}
		if known := cache.Lookup(key).Prefixes != nil; known != (n == 3) {
			t.Errorf("probe %d fails: prefixes are known: %t", n, known)
		}
		cache.Record(key, wasteful)
		cache.Record(key, wasteful)
		if _, again := cache.BeginLearning(key); again != (n < 3) {
			t.Errorf("probe %d fails: prefixes are learned again after two wasteful scans: %t", n, again)
		}
	}
}

// Prefixes are learned from the first hour that has rows, from the middle of the hours on, or else before that; if
// there is none, nothing is known. A row without tags has rows after it, too.
func TestSeek_learnsFromMiddle(t *testing.T) {
	s := encoding.DefaultSchema()
	for _, c := range []struct {
		hours, with []int // of the part; of rows
		from        int   // the hour that is learned from, or -1
	}{
		{[]int{0, 4}, []int{0, 1, 2, 3}, 2},
		{[]int{0, 3}, []int{0, 1, 2}, 1},
		{[]int{0, 5}, []int{0, 1, 4}, 4},
		{[]int{0, 5}, []int{0, 1}, 0},
		{[]int{2, 4}, []int{0, 1, 2, 3, 4}, 3},
		{[]int{2, 4}, []int{0, 1, 4}, -1},
		{[]int{2, 3}, []int{0, 1, 3}, -1},
	} {
		m := &operatortest.Store{}
		for _, hour := range c.with {
			at := base + int64(hour)*3600
			one := operatortest.Every(at, at+3600, 1800, identity)
			m.Load(s, metric, series(one), series(one, operatortest.Tag(1, 1+hour), operatortest.Tag(3, 1)))
		}
		from, to := base+int64(c.hours[0])*3600, base+int64(c.hours[1])*3600
		part := whole(operatortest.Plan(s, metric, from, to))
		part.Plan.Tags = []scanplan.TagPredicate{{TagK: operatortest.UID(3), Op: scanplan.In,
			Values: []encoding.UID{operatortest.UID(1)}}}
		cache, key := access.NewPrefixCache(), access.CacheKey(part)
		cache.Record(key, access.ScanCost{From: from, To: to, Scanned: 10_000})
		_, stats, err := read(t, m, part, operator.Options{Prefixes: cache})
		if err != nil {
			t.Fatal(err)
		}
		if c.from < 0 { // one hour has no other before it
			if known := cache.Lookup(key).Prefixes; known != nil || stats.Probes != int64(c.hours[1]-c.hours[0]) {
				t.Errorf("hours %d with rows in %d: %d probes, known is %v, want nothing", c.hours, c.with,
					stats.Probes, known)
			}
			continue
		}
		want := access.NewPrefixes(s, operatortest.UID(3))
		want.Add(s.AppendTags(nil, []encoding.TagPair{operatortest.Tag(1, 1+c.from)}))
		if known := cache.Lookup(key).Prefixes; len(known) != 1 || !reflect.DeepEqual(known[0], want) {
			t.Errorf("hours %d with rows in %d: known is %+v, want the prefix of hour %d", c.hours, c.with, known,
				c.from)
		}
	}
}

// A scan that was made elsewhere shows whether prefixes would have saved reads, if it was a skip scan. Where ranges of
// the first tag were read, or a probe decides, there is nothing to learn.
func TestRecordScan(t *testing.T) {
	tsuids := withTSUIDs(narrowPart(1), 1, 5, 1)
	wasteful := operator.Stats{Ranges: 2, Rows: 100, Rejected: 99, RowsScanned: 1000}
	useful, walked := wasteful, wasteful
	useful.Rows, useful.Rejected, walked.Ranges = 930, 1, 0
	for name, c := range map[string]struct {
		part          *scanplan.Part
		stats         operator.Stats
		many, learned bool
	}{
		"wasteful":  {narrowPart(1, in(2, 5, 1)), wasteful, true, true},
		"useful":    {narrowPart(1, in(2, 5, 1)), useful, true, false},
		"walked":    {narrowPart(1, in(2, 5, 1)), walked, false, false},
		"first tag": {narrowPart(1, in(1, 5, 1)), wasteful, true, false},
		"by key":    {tsuids, wasteful, false, false},
		"probed":    {narrowPart(4096, in(2, 5, 1)), wasteful, false, false},
	} {
		cache := access.NewPrefixCache()
		operator.RecordScan(cache, c.part, c.stats)
		key := access.CacheKey(c.part)
		known := cache.Lookup(key)
		if _, learned := cache.BeginLearning(key); known.Many != c.many || known.Few || learned != c.learned {
			t.Errorf("%s: known is %+v, learned %t, want many %t, learned %t", name, known, learned, c.many, c.learned)
		}
	}
}
