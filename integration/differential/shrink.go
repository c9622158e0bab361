package differential

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// Shrink returns the smallest query that it finds to fail still: fewer
// sub-queries and options, simpler functions, fewer series, a shorter range.
// fails is called at most attempts times; q itself is taken to fail.
func Shrink(q Query, d *Data, attempts int, fails func(Query) bool) Query {
	return shrink(q, attempts, func(q Query) []Query { return candidates(q, d) }, fails)
}

// shrink takes the first of the smaller ones that fails, and goes on from there as long as
// there is one. fails is called at most attempts times. No chain of smaller ones may be endless.
func shrink[T any](from T, attempts int, smaller func(T) []T, fails func(T) bool) T {
	for {
		all := smaller(from)
		i := slices.IndexFunc(all, func(c T) bool {
			attempts--
			return attempts >= 0 && fails(c)
		})
		if i < 0 {
			return from
		}
		from = all[i]
	}
}

// candidates are queries a step smaller than q, the largest steps first. No
// step leads back, so that every chain of them ends.
func candidates(q Query, d *Data) (all []Query) {
	if len(q.Subs) > 1 {
		for i := range q.Subs {
			c := q.Clone()
			c.Subs = c.Subs[i : i+1]
			all = append(all, c)
		}
	}
	all = append(all, shorter(q)...)
	for i := range q.Subs {
		for _, s := range smallerSubs(q.Subs[i], d) {
			c := q.Clone()
			c.Subs[i] = s
			all = append(all, c)
		}
	}
	return append(all, withoutOptions(q)...)
}

func withoutOptions(q Query) (all []Query) {
	for _, option := range []func(*Query) *bool{
		func(q *Query) *bool { return &q.AsGET }, func(q *Query) *bool { return &q.UseCalendar },
		func(q *Query) *bool { return &q.Arrays }, func(q *Query) *bool { return &q.ShowTSUIDs },
		func(q *Query) *bool { return &q.ShowQuery }, func(q *Query) *bool { return &q.GlobalAnnotations },
		func(q *Query) *bool { return &q.NoAnnotations }, func(q *Query) *bool { return &q.MS },
	} {
		if c := q.Clone(); *option(&c) {
			*option(&c) = false
			all = append(all, c)
		}
	}
	if q.Timezone != "" {
		c := q.Clone()
		c.Timezone = ""
		all = append(all, c)
	}
	return all
}

// shorter takes a half off the range, or an eighth, at either end. Cuts of whole hours and
// seconds come first: start and end keep their places in hours, at whose edges servers may
// differ. Dates are left alone: what they mean depends on the zone.
func shorter(q Query) (all []Query) {
	start, end := readTime(q.Start), readTime(q.End)
	if strings.Contains(q.Start+q.End, "/") {
		return nil
	}
	for _, part := range []int64{2, 8} {
		for _, step := range []int64{hour, second, 1} {
			cut := (end - start) / part
			if cut -= cut % step; cut == 0 {
				continue
			}
			for _, r := range [][2]int64{{start, end - cut}, {start + cut, end}} {
				c := q.Clone()
				c.Start, c.End = strconv.FormatInt(r[0], 10), strconv.FormatInt(r[1], 10)
				all = append(all, c)
			}
		}
	}
	return all
}

// smallerSubs are sub-queries a step smaller than s. No step leads back: see candidates.
func smallerSubs(s Sub, d *Data) (all []Sub) {
	add := func(change func(*Sub)) {
		c := Query{Subs: []Sub{s}}.Clone().Subs[0]
		change(&c)
		all = append(all, c)
	}
	// A tsuid parameter cannot say explicit_tags: a step below drops that option first.
	// Series that are put have no TSUID here: the servers assign it.
	if len(s.TSUIDs) == 0 && !s.ExplicitTags {
		if of := d.Of(s.Metric); len(of) > 0 && of[0].TSUID != "" {
			add(func(c *Sub) { c.Metric, c.Filters, c.AsTags, c.TSUIDs = "", nil, false, tsuids(of) })
		}
	}
	for _, fewer := range sublists(s.TSUIDs) {
		add(func(c *Sub) { c.TSUIDs = fewer })
	}
	if s.Rate {
		add(func(c *Sub) { c.Rate, c.Options = false, nil })
	}
	if s.Options != nil {
		add(func(c *Sub) { c.Options = nil })
		add(func(c *Sub) { c.Options.ResetValue = 0 })
		add(func(c *Sub) { c.Options.CounterMax = 0 })
	}
	if s.ExplicitTags {
		add(func(c *Sub) { c.ExplicitTags = false })
	}
	if s.Aggregator != "sum" && s.Aggregator != "none" {
		add(func(c *Sub) { c.Aggregator = "sum" })
		add(func(c *Sub) { c.Aggregator = "none" })
	}
	// One percentile or the buckets must stay: without them the query is one of points.
	for i := range s.Percentiles {
		if len(s.Percentiles) > 1 || s.ShowBuckets {
			add(func(c *Sub) { c.Percentiles = slices.Delete(c.Percentiles, i, i+1) })
		}
	}
	if s.ShowBuckets && len(s.Percentiles) > 0 {
		add(func(c *Sub) { c.ShowBuckets = false })
	}
	for _, spec := range smallerDownsamples(s.Downsample) {
		add(func(c *Sub) { c.Downsample = spec })
	}
	for i := range s.Filters {
		for _, fewer := range smallerFilters(s.Filters, i) {
			add(func(c *Sub) { c.Filters = fewer })
		}
	}
	if s.AsTags {
		add(func(c *Sub) { c.AsTags = false })
	}

	// A step that changes nothing would make an endless chain. A parameter does not say
	// AsTags.
	return slices.DeleteFunc(all, func(c Sub) bool { return c.parameter() == s.parameter() && c.AsTags == s.AsTags })
}

func tsuids(of []Series) (all []string) {
	for _, s := range of {
		all = append(all, s.TSUID)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// sublists are the halves of a list, and the list without each of its elements.
func sublists(list []string) (all [][]string) {
	n := len(list)
	if n < 2 {
		return nil
	}
	all = append(all, slices.Clone(list[:n/2]), slices.Clone(list[n/2:]))
	for i := range list {
		all = append(all, slices.Delete(slices.Clone(list), i, i+1))
	}
	return all
}

func smallerDownsamples(spec string) (all []string) {
	if spec == "" {
		return nil
	}
	all = append(all, "")
	parts := strings.Split(spec, "-")
	if len(parts) > 2 {
		all = append(all, parts[0]+"-"+parts[1])
	}
	if parts[1] != "sum" {
		all = append(all, strings.Join(append([]string{parts[0], "sum"}, parts[2:]...), "-"))
	}
	if plain, ok := strings.CutSuffix(parts[0], "c"); ok {
		all = append(all, strings.Join(append([]string{plain}, parts[1:]...), "-"))
	}
	return all
}

// smallerFilters drops or simplifies filter i.
func smallerFilters(filters []Filter, i int) (all [][]Filter) {
	all = append(all, slices.Delete(slices.Clone(filters), i, i+1))
	change := func(f Filter) {
		c := slices.Clone(filters)
		c[i] = f
		all = append(all, c)
	}
	f := filters[i]
	if f.GroupBy {
		g := f
		g.GroupBy = false
		change(g)
	}
	if strings.HasSuffix(f.Type, "literal_or") {
		for _, fewer := range sublists(strings.Split(f.Text, "|")) {
			g := f
			g.Text = strings.Join(fewer, "|")
			change(g)
		}
	}
	return all
}

// CellsOf are the data cells of the series that the query asks for, from the
// hour before its range to the hour behind it.
func (d *Data) CellsOf(q Query) (cells []Cell) {
	from, to := readTime(q.Start)/1000-3600, readTime(q.End)/1000+3600
	for _, c := range d.Rows {
		// A row that begins less than an hour before from reaches into the range.
		key, err := d.Schema.ParseRowKey(c.Row)
		if err != nil || int64(key.BaseTime) < from-3600 || int64(key.BaseTime) > to {
			continue
		}
		tsuid := hex.EncodeToString(d.Schema.AppendTSUID(nil, c.Row))
		for _, s := range q.Subs {
			if slices.ContainsFunc(d.asked(s), func(o Series) bool { return strings.EqualFold(o.TSUID, tsuid) }) {
				cells = append(cells, c)
				break
			}
		}
	}
	return cells
}
