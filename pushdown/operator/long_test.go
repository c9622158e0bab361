package operator_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
)

// counted is a store that counts a server's work for its scans: it seeks from range to range if
// there are rows between, and reads each row that it reaches.
type counted struct {
	store.Reader                // only Scan is called
	rows                        []store.Row
	scans, ranges, seeks, looks int64

	last  scanplan.HexBytes // if set, scans must end here or before
	most  int64             // ranges of one scan
	block int               // rows that a scan returns at once, 0 for all
	fail  func() error      // if set, is called before each block
	open  int               // scans that are not closed
}

func (*counted) Features() store.Features { return store.Features{} }

// cost is about the cost of all scans, in rows of one point: five for a range to which the server
// seeks, a quarter for any other range, and 50 for a call.
func (c *counted) cost() int64 { return c.looks + c.ranges/4 + 19*c.seeks/4 + 50*c.scans }

func (c *counted) search(key []byte) int {
	return sort.Search(len(c.rows), func(i int) bool { return bytes.Compare(c.rows[i].Key, key) >= 0 })
}

func (c *counted) Scan(_ context.Context, s store.Scan) (store.Scanner, error) {
	if len(c.last) > 0 && (bytes.Compare(s.Start, s.Stop) > 0 || bytes.Compare(s.Stop, c.last) > 0) {
		return nil, fmt.Errorf("got a scan of %x to %x, want one that ends at %s or before", s.Start, s.Stop, c.last)
	}
	out, ranges := &countedRows{of: c}, s.Filter.Ranges
	c.open++
	c.most = max(c.most, int64(len(ranges)))
	c.scans++
	c.ranges += int64(len(ranges))
	for i := c.search(s.Start); i < len(c.rows); i++ {
		key := c.rows[i].Key
		if len(s.Stop) > 0 && bytes.Compare(key, s.Stop) >= 0 {
			break
		}
		if len(s.Filter.Ranges) > 0 {
			for len(ranges) > 0 && bytes.Compare(ranges[0].Stop, key) <= 0 {
				ranges = ranges[1:]
			}
			if len(ranges) == 0 {
				break
			}
			if bytes.Compare(key, ranges[0].Start) < 0 {
				c.seeks++
				i = c.search(ranges[0].Start) - 1
				continue
			}
		}
		c.looks++
		out.stats.RowsScanned++
		if p := s.Filter.Pattern; p == nil || p.Matches(key) {
			out.rows = append(out.rows, c.rows[i])
		}
		if len(out.rows) == s.MaxRows {
			break
		}
	}
	out.stats.Rows = int64(len(out.rows))
	return out, nil
}

type countedRows struct {
	of     *counted
	rows   []store.Row
	stats  store.ScanStats
	closed bool
}

func (r *countedRows) Next() ([]store.Row, error) {
	if f := r.of.fail; f != nil {
		if err := f(); err != nil {
			return nil, err
		}
	}
	rows := r.rows
	if n := r.of.block; n > 0 && n < len(rows) {
		rows = rows[:n]
	}
	if r.rows = r.rows[len(rows):]; len(rows) == 0 {
		return nil, io.EOF
	}
	return rows, nil
}
func (*countedRows) NextBytes() int64 { return 0 }

func (r *countedRows) Stats() store.ScanStats { return r.stats }
func (r *countedRows) Close() error {
	if !r.closed {
		r.of.open--
	}
	r.closed = true
	return nil
}

// longTable is a metric over years: in hour h it has hosts(h) hosts, of the tags that tagsOf gives
// them.
func longTable(s encoding.Schema, hours int, hosts func(hour int) int,
	tagsOf func(host int) []encoding.TagPair) *counted {
	c := &counted{}
	q, value := operatortest.Encode(base*1000, encoding.IntValue(1))
	cells := []store.Cell{{
		Family:    []byte(encoding.FamilyData),
		Qualifier: encoding.AppendQualifier(nil, q),
		Value:     value,
		Timestamp: 1,
	}}
	for hour := range hours {
		for host := range hosts(hour) {
			key := s.AppendRowKey(nil, metric, uint32(base+3600*hour), s.AppendTags(nil, tagsOf(host)))
			c.rows = append(c.rows, store.Row{Key: key, Cells: cells})
		}
	}
	slices.SortFunc(c.rows, func(a, b store.Row) int { return bytes.Compare(a.Key, b.Key) })
	return c
}

// hostOnly has the host alone, behindCentre has a data centre before it.
func hostOnly(host int) []encoding.TagPair { return []encoding.TagPair{operatortest.Tag(2, 1+host)} }
func behindCentre(host int) []encoding.TagPair {
	return []encoding.TagPair{operatortest.Tag(1, 1+host%3), operatortest.Tag(2, 1+host)}
}

// years is how many hours the tables of these tests have.
const years = 2000

// longShapes are metrics over years, by how many hosts an hour has.
var longShapes = []struct {
	name  string
	hosts func(hour int) int
}{
	{"a row now and then", func(h int) int { return map[bool]int{true: 1}[h%20 == 0] }},
	{"one host", func(int) int { return 1 }},
	{"ten hosts", func(int) int { return 10 }},
	{"forty hosts", func(int) int { return 40 }},
	{"a year of one, then nothing", func(h int) int { return map[bool]int{true: 1}[h < years/3] }},
	{"a month of forty, after nothing", func(h int) int { return map[bool]int{true: 40}[h > years-720] }},
	{"one, at last forty", func(h int) int { return map[bool]int{true: 40, false: 1}[h > years-700] }},
	{"forty, then one", func(h int) int { return map[bool]int{true: 40, false: 1}[h < 700] }},
	{"more and more", func(h int) int { return 1 + 60*h/years }},
	{"fewer and fewer", func(h int) int { return 60 - 60*h/years }},
	{"weeks of forty", func(h int) int { return map[bool]int{true: 40, false: 2}[h/168%4 == 0] }},
}

// longPlan wants one host over all time, and a year before.
func longPlan(s encoding.Schema) scanplan.Plan {
	plan := operatortest.Plan(s, metric, base-365*24*3600, base+(years+1000)*3600)
	plan.Tags = []scanplan.TagPredicate{{
		TagK:   operatortest.UID(2),
		Op:     scanplan.In,
		Values: []encoding.UID{operatortest.UID(1)},
	}}
	return plan
}

// pieces reads a part by key ranges in all of its hours, as many at a time as a scan can have.
func pieces(t *testing.T, from *counted, part *scanplan.Part) {
	p := &part.Plan
	for at := p.From; at < p.To; at += 6000 * 3600 {
		piece := *part
		piece.Range = scanplan.KeyRange{
			Start: p.HourKey(part.Range, at),
			Stop:  p.HourKey(part.Range, min(at+6000*3600, p.To)),
		}
		a := operator.ChooseFilter(&piece)
		if _, err := from.Scan(t.Context(),
			store.Scan{Start: piece.Range.Start, Stop: piece.Range.Stop, Filter: a.Filter}); err != nil {
			t.Fatal(err)
		}
	}
}

// ofHost reads all rows of a range and returns how many are of the host that longPlan wants.
func (c *counted) ofHost(t *testing.T, r scanplan.KeyRange) (n int64) {
	sc, err := c.Scan(t.Context(), store.Scan{Start: r.Start, Stop: r.Stop})
	if err != nil {
		t.Fatal(err)
	}
	rows, _ := sc.Next() // all, or io.EOF
	for _, row := range rows {
		if bytes.HasSuffix(row.Key, slices.Concat(operatortest.UID(2), operatortest.UID(1))) {
			n++
		}
	}
	return n
}

// One host over all time costs at most half more than the cheaper of two ways: key ranges in all
// hours, and reading every row. On a salted table each bucket is a part, so this holds for the sum.
// The allowance of a bucket is a few calls.
//
//fault:long-part-read-the-dearer-way here.Seeks(ranges) => !here.Seeks(ranges)
func TestLong_cost(t *testing.T) {
	salted := encoding.DefaultSchema()
	salted.SaltWidth, salted.SaltBuckets = 1, 4
	for _, keys := range []struct {
		name   string
		schema encoding.Schema
		tagsOf func(host int) []encoding.TagPair
		cache  bool
	}{
		{"host first", encoding.DefaultSchema(), hostOnly, false},
		{"behind a data centre", encoding.DefaultSchema(), behindCentre, true},
		{"salted", salted, hostOnly, false},
	} {
		for _, shape := range longShapes {
			name := keys.name + ", " + shape.name
			table := longTable(keys.schema, years, shape.hosts, keys.tagsOf)
			plan := longPlan(keys.schema)
			var cost, sought, walked int64
			for _, r := range plan.Ranges {
				part := &scanplan.Part{Plan: plan, Range: r}
				*table = counted{rows: table.rows}
				pieces(t, table, part)
				sought += table.cost()
				*table = counted{rows: table.rows}
				want := table.ofHost(t, r)
				walked += table.cost()

				*table = counted{rows: table.rows}
				var cache *access.PrefixCache
				if keys.cache {
					cache = access.NewPrefixCache()
				}
				got, stats, err := read(t, table, part, operator.Options{Prefixes: cache})
				if err != nil {
					t.Fatal(err)
				}
				cost += table.cost()
				if stats.Points != want || len(got) > 1 {
					t.Errorf("%s: %d points of %d series, want %d of one", name, stats.Points, len(got), want)
				}
				if probes := table.looks - stats.RowsScanned; stats.Ranges != table.ranges || probes < 0 ||
					probes > stats.Probes {
					t.Errorf("%s: %d ranges and %d rows are counted, want %d and %d", name, stats.Ranges,
						stats.RowsScanned, table.ranges, table.looks)
				}
			}
			t.Logf("%-45s costs %7d; seeking %7d, walking %7d", name, cost, sought, walked)
			calls := int64(40 * 50 * len(plan.Ranges))
			if limit := min(sought, walked)*3/2 + calls; cost > limit {
				t.Errorf("%s: costs %d, want at most %d: %d by seeking, %d by walking", name, cost, limit, sought,
					walked)
			}
		}
	}
}

// How a long part reads each shape: it probes the begin and the end of each section, and reads it by one scan, or by
// several if its ranges are too many for one. Rows of many bytes are worth a seek where small ones are not.
func TestLong_scans(t *testing.T) {
	s := encoding.DefaultSchema()
	shapes := map[string]func(int) int{"nothing": func(int) int { return 0 }}
	for _, shape := range longShapes {
		shapes[shape.name] = shape.hosts
	}
	for _, c := range []struct {
		shape         string
		bytes, values int // of a row; of the filter, every second host
		want          string
	}{
		{"nothing", 0, 1, "1 probes, 0 scans of 0 ranges, at most 0 at once, 0 rows"},
		{"a row now and then", 0, 1, "1 probes, 1 scans of 0 ranges, at most 0 at once, 200 rows"},
		{"one host", 0, 1, "8 probes, 4 scans of 0 ranges, at most 0 at once, 2560 rows"},
		{"ten hosts", 0, 1, "11 probes, 7 scans of 0 ranges, at most 0 at once, 20896 rows"},
		{"forty hosts", 0, 1, "11 probes, 7 scans of 4024 ranges, at most 2048 at once, 2896 rows"},
		{"a year of one, then nothing", 0, 1, "7 probes, 3 scans of 0 ranges, at most 0 at once, 948 rows"},
		{"a month of forty, after nothing", 0, 1, "9 probes, 5 scans of 1536 ranges, at most 512 at once, 1487 rows"},
		{"one, at last forty", 0, 1, "23 probes, 9 scans of 1416 ranges, at most 512 at once, 5797 rows"},
		{"forty, then one", 0, 1, "21 probes, 9 scans of 1408 ranges, at most 512 at once, 4228 rows"},
		{"more and more", 0, 1, "16 probes, 7 scans of 3298 ranges, at most 2048 at once, 5552 rows"},
		{"weeks of forty", 0, 1, "13 probes, 7 scans of 384 ranges, at most 128 at once, 18088 rows"},
		{"a row now and then", 3000, 1, "5 probes, 3 scans of 0 ranges, at most 0 at once, 176 rows"},
		{"ten hosts", 3000, 1, "11 probes, 7 scans of 4024 ranges, at most 2048 at once, 2196 rows"},
		{"forty hosts", 3000, 20, "11 probes, 8 scans of 42253 ranges, at most 19089 at once, 40490 rows"},
	} {
		table := longTable(s, years, shapes[c.shape], hostOnly)
		table.block = 7
		for i := range table.rows {
			if c.bytes > 0 {
				table.rows[i].Cells = append(slices.Clone(table.rows[i].Cells), store.Cell{
					Family: []byte(encoding.FamilyData), Qualifier: []byte{9, 9, 9}, Value: make([]byte, c.bytes)})
			}
		}
		plan := longPlan(s)
		for v := 1; v < c.values; v++ {
			plan.Tags[0].Values = append(plan.Tags[0].Values, operatortest.UID(2*v+1))
		}
		_, stats, err := read(t, table, whole(plan), operator.Options{})
		got := fmt.Sprintf("%d probes, %d scans of %d ranges, at most %d at once, %d rows", stats.Probes,
			table.scans-stats.Probes, stats.Ranges, table.most, stats.RowsScanned)
		if err != nil || table.open != 0 || got != c.want {
			t.Errorf("%s of %d bytes, %d of them: %v, %d scans are open\n got %s\nwant %s", c.shape, c.bytes, c.values,
				err, table.open, got, c.want)
		}
	}
}

// A long part whose store fails in a probe or a scan fails with that error, and one that is closed leaves no scan open.
// What it has read is counted before its end, too.
func TestLong_ends(t *testing.T) {
	s := encoding.DefaultSchema()
	table := longTable(s, years, func(h int) int { return map[bool]int{true: 40, false: 1}[h > years-700] }, hostOnly)
	broken := errors.New("disk on fire")
	for n := 0; ; n++ {
		calls := 0
		*table = counted{rows: table.rows, block: 500, fail: func() error {
			if calls++; calls == n+1 {
				return broken
			}
			return nil
		}}
		_, _, err := read(t, table, whole(longPlan(s)), operator.Options{})
		if table.open != 0 {
			t.Errorf("block %d fails: %d scans are open", n, table.open)
		}
		if calls <= n {
			if err != nil || n < 30 {
				t.Errorf("no block of %d fails: %v", n, err)
			}
			break
		}
		if !errors.Is(err, broken) {
			t.Errorf("block %d fails: got %v", n, err)
		}
	}

	*table = counted{rows: table.rows, block: 100}
	op, err := operator.New(table, whole(longPlan(s)), operator.Options{FlushBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	r, err := op.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.Release()
	if n := op.Stats().Rows; n == 0 || table.open != 1 {
		t.Errorf("after the first record %d rows are counted and %d scans open, want some rows and one scan", n,
			table.open)
	}
	op.Close()
	if table.open != 0 {
		t.Errorf("after Close %d scans are open", table.open)
	}
}

// A row of an hour before the plan may hold points of its first hour: a long part does not pass over it, even if it
// begins to read by seeking.
func TestLong_offHourBefore(t *testing.T) {
	s := encoding.DefaultSchema()
	table := longTable(s, years, func(int) int { return 40 }, hostOnly)
	late := table.rows[0]
	late.Key = s.AppendRowKey(nil, metric, base-1800, s.AppendTags(nil, hostOnly(0)))
	table.rows = slices.Insert(table.rows, 0, late)
	plan := longPlan(s)
	plan.From, plan.Start = base, base*1000
	plan.Ranges[0].Start = plan.HourKey(plan.Ranges[0], base)
	_, _, err := read(t, table, whole(plan), operator.Options{})
	var offHour *operator.OffHourError
	if !errors.As(err, &offHour) {
		t.Errorf("got %v, want an OffHourError", err)
	}
}

// A long part learns key prefixes where it seeks, and only there, and notes what its scans have cost.
func TestLong_learns(t *testing.T) {
	s := encoding.DefaultSchema()
	wasteful := access.ScanCost{From: base, To: base + years*3600, Scanned: years * 1000, Ranges: 1}
	for hosts, seeks := range map[int]bool{1: false, 120: true} {
		table := longTable(s, years, func(int) int { return hosts }, behindCentre)
		part := whole(longPlan(s))
		cache, key := access.NewPrefixCache(), access.CacheKey(part)
		cache.Record(key, wasteful)
		_, stats, err := read(t, table, part, operator.Options{Prefixes: cache})
		if known := cache.Lookup(key); err != nil || known.Prefixes != nil != seeks || known.Few != seeks ||
			stats.Ranges > 0 != seeks {
			t.Errorf("%d hosts: %v, known is %+v after %d ranges; prefixes and few rows are noted, want %t", hosts, err,
				known, stats.Ranges, seeks)
		}
	}
}

// A long part gives the same rows as reading all, for any rows and cuts, with crooked rows, and for
// series that are named.
func TestLong_sameAnswers(t *testing.T) {
	sought, walked, straight := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := encoding.DefaultSchema()
		if rapid.Bool().Draw(t, "salted") {
			s.SaltWidth, s.SaltBuckets = 1, 2
		}
		table := &operatortest.Store{BlockRows: 7}
		bursts := rapid.IntRange(0, 4).Draw(t, "bursts")
		for range bursts {
			first, hours := rapid.IntRange(0, 3000).Draw(t, "hour"), rapid.IntRange(1, 400).Draw(t, "hours")
			hosts, each := rapid.SampledFrom([]int{1, 3, 60, 60, 60}).Draw(t, "hosts"),
				rapid.SampledFrom([]int{1, 1, 1, 7, 50}).Draw(t, "one hour in")
			late := rapid.SampledFrom([]int{0, 0, 0, 1800}).Draw(t, "late")
			for hour := first; hour < first+hours; hour += each {
				for host := range hosts {
					q, value := operatortest.Encode(base*1000, encoding.IntValue(int64(host)))
					key := s.AppendRowKey(nil, metric, uint32(base+3600*hour+late),
						s.AppendTags(nil, behindCentre(host)))
					table.Rows = append(table.Rows,
						store.Row{
							Key: key,
							Cells: []store.Cell{{
								Family:    []byte(encoding.FamilyData),
								Qualifier: encoding.AppendQualifier(nil, q),
								Value:     value,
								Timestamp: 1,
							}},
						})
				}
			}
		}
		slices.SortFunc(table.Rows, func(a, b store.Row) int { return bytes.Compare(a.Key, b.Key) })
		table.Rows = slices.CompactFunc(table.Rows, func(a, b store.Row) bool { return bytes.Equal(a.Key, b.Key) })

		plan := operatortest.Plan(s, metric, base+3600*int64(rapid.IntRange(-2000, 100).Draw(t, "from")),
			base+3600*int64(rapid.IntRange(2000, 5000).Draw(t, "to")))
		plan.SplitOffHour = rapid.Bool().Draw(t, "straight")
		if rapid.Bool().Draw(t, "by TSUID") {
			for host := range rapid.IntRange(1, 3).Draw(t, "series") {
				plan.TSUIDs = append(plan.TSUIDs, encoding.UID(s.AppendTags(bytes.Clone(metric), behindCentre(host))))
			}
		} else {
			plan.Tags = []scanplan.TagPredicate{{
				TagK:   operatortest.UID(rapid.SampledFrom([]int{1, 2}).Draw(t, "tag")),
				Op:     scanplan.In,
				Values: []encoding.UID{operatortest.UID(1), operatortest.UID(2)},
			}}
		}
		cache := access.NewPrefixCache()
		for _, part := range cutParts(t, plan) {
			want, _, err1 := read(t, reading{table}, part, operator.Options{})
			got, stats, err2 := read(t, table, part, operator.Options{Prefixes: cache})
			if (err1 == nil) != (err2 == nil) {
				t.Fatalf("part %s to %s: %v, want %v", part.Range.Start, part.Range.Stop, err2, err1)
			}
			if diff := cmp.Diff(want, got); diff != "" && err1 == nil {
				t.Fatalf("part %s to %s of %s: %s", part.Range.Start, part.Range.Stop, &part.Plan, diff)
			}
			if operator.ChooseAccess(part, cache).ProbedRanges == 0 || err1 != nil {
				continue
			}
			straight += map[bool]int{true: 1}[plan.SplitOffHour]
			if stats.Ranges > 0 {
				sought++
			} else if stats.Rows > 0 {
				walked++
			}
		}
	})
	t.Logf("%d parts sought, %d walked, %d straight", sought, walked, straight)
	if sought == 0 || walked == 0 || straight == 0 {
		t.Errorf("%d long parts sought, %d walked, %d were straight, want some of each", sought, walked, straight)
	}
}

// Rows of rollups, which hold a day each, are probed in the same way.
func TestLong_rollups(t *testing.T) {
	from, to := int64(1293840000), int64(1293840000)+3000*86400
	layout := encoding.RollupLayout{Interval: 3600, Span: encoding.RowSpan{Count: 1, Unit: "d"}}
	table := &counted{}
	for day := range int64(3000) {
		if day%2 == 1 && day < 1500 {
			continue
		}
		for host := range map[bool]int{true: 80, false: 1}[day > 2000] {
			key := encoding.DefaultSchema().AppendRowKey(nil, metric, uint32(from+day*86400),
				encoding.DefaultSchema().AppendTags(nil, hostOnly(host)))
			table.rows = append(table.rows,
				store.Row{
					Key: key,
					Cells: []store.Cell{{
						Family:    []byte(encoding.FamilyData),
						Qualifier: []byte("sum:\x00\x00"),
						Value:     []byte{byte(host)},
						Timestamp: 1,
					}},
				})
		}
	}
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, from, to)
	plan.Downsample = &scanplan.Downsample{Interval: 3600_000, Function: "sum", Fill: scanplan.FillNone}
	plan.Rollup = &scanplan.Rollup{Layout: layout, Column: sumColumn}
	plan.Tags = []scanplan.TagPredicate{{
		TagK:   operatortest.UID(2),
		Op:     scanplan.In,
		Values: []encoding.UID{operatortest.UID(1)},
	}}
	if a := operator.ChooseAccess(whole(plan), nil); a.ProbedRanges == 0 {
		t.Fatalf("not long: %s", a.Reason)
	}
	got, stats, err := read(t, table, whole(plan), operator.Options{})
	if err != nil || stats.Points != 2250 || len(got) != 1 {
		t.Errorf("%d points of %d series, %v, want 2250 of one", stats.Points, len(got), err)
	}
	if stats.Ranges == 0 || stats.RowsScanned > int64(len(table.rows)/10) {
		t.Errorf("%d ranges, %d rows looked at, want some ranges and few rows of %d", stats.Ranges, stats.RowsScanned,
			len(table.rows))
	}
}

// A long part reads nothing after its range, which may end inside a row hour or at a key that is cut
// off, as HBase splits regions. One without an end is not long.
func TestLong_borders(t *testing.T) {
	s := encoding.DefaultSchema()
	table := longTable(s, 500, func(int) int { return 40 }, hostOnly)
	plan := longPlan(s)
	whole := plan.Ranges[0]
	at := s.BaseTimeAt()
	for _, hour := range []int64{250, 270, 290} {
		key := plan.HourKey(whole, base+hour*3600)
		for _, border := range []scanplan.HexBytes{
			key,
			key[:at+3],
			key[:at+2],
			append(bytes.Clone(key), 0),
			s.AppendRowKey(nil, metric, uint32(base+hour*3600), s.AppendTags(nil, hostOnly(0))),
		} {
			for _, r := range []scanplan.KeyRange{
				{Start: whole.Start, Stop: border},
				{Start: border, Stop: whole.Stop},
			} {
				table.last = r.Stop
				part := &scanplan.Part{Plan: plan, Range: r}
				if a := operator.ChooseAccess(part, nil); a.ProbedRanges == 0 {
					t.Fatalf("%s to %s: not long: %s", r.Start, r.Stop, a.Reason)
				}
				_, stats, err := read(t, table, part, operator.Options{})
				if want := table.ofHost(t, r); err != nil || stats.Points != want || want == 0 {
					t.Errorf("%s to %s: %d points, %v, want %d", r.Start, r.Stop, stats.Points, err, want)
				}
			}
		}
	}

	for _, stop := range []scanplan.HexBytes{nil, encoding.PrefixEnd(metric)} {
		part := &scanplan.Part{Plan: plan, Range: scanplan.KeyRange{Start: whole.Start, Stop: stop}}
		if a := operator.ChooseAccess(part, nil); a.ProbedRanges != 0 {
			t.Errorf("a part that ends at %q is long: %s", stop, a.Reason)
		}
	}
}
