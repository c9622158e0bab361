package merge

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
)

var errBad = errors.New("refused when parsed")

// parseDownsample reads interval-function[-fill].
func parseDownsample(q *request, text string) (*scanplan.Downsample, error) {
	if text == "" {
		return nil, nil
	}
	parts := strings.Split(text, "-")
	if len(parts) < 2 {
		return nil, errBad
	}
	d := &scanplan.Downsample{Function: scanplan.Aggregator(parts[1]), Fill: scanplan.FillNone, Zone: q.Timezone}
	if d.Zone == "" {
		d.Zone = "UTC"
	}
	if len(parts) > 2 {
		d.Fill = scanplan.Fill(strings.ToLower(parts[2]))
	}
	if d.Fill == "scalar" {
		return nil, errBad
	}
	interval := parts[0]
	if strings.Contains(interval, "all") {
		d.All = true
		return d, nil
	}
	d.Calendar = q.UseCalendar || strings.HasSuffix(interval, "c")
	interval = strings.TrimSuffix(interval, "c")
	m := regexp.MustCompile(`^(\d+)(ms|[smhdwny])$`).FindStringSubmatch(interval)
	if m == nil {
		return nil, errBad
	}
	d.Count, _ = strconv.Atoi(m[1])
	d.Unit = m[2]
	unit := map[string]int64{"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000,
		"n": 2_592_000_000, "y": 31_536_000_000}
	d.Interval = int64(d.Count) * unit[d.Unit]
	if d.Interval == 0 {
		return nil, errBad
	}
	return d, nil
}

// compile returns the plan of a request and the series that it reads.
func (w *world) compile(q *request) (*scanplan.Plan, []series, error) {
	sub := &q.Queries[0]
	d, err := parseDownsample(q, sub.Downsample)
	if err != nil {
		return nil, nil, err
	}
	metric, ok := w.uids["metric"][sub.Metric]
	if _, known := aggregate.Lookup(scanplan.Aggregator(sub.Aggregator)); !known || !ok {
		return nil, nil, errBad
	}
	p := newPlan(w.schema, metric, millis(q.Start), millis(q.End), d)
	p.Aggregator = scanplan.Aggregator(sub.Aggregator)
	if sub.Rate {
		o := sub.RateOptions
		p.Rate = &scanplan.Rate{
			Counter:    o.Counter,
			DropResets: o.DropResets,
			CounterMax: number(o.CounterMax, math.MaxInt64),
			ResetValue: number(o.ResetValue, 0),
		}
	}
	groupBy := map[string]bool{}
	for _, f := range sub.Filters {
		if f.GroupBy {
			groupBy[string(w.uids["tagk"][f.Tagk])] = true
		}
	}
	for k := range groupBy {
		p.GroupBy = append(p.GroupBy, encoding.UID(k))
	}
	slices.SortFunc(p.GroupBy, func(a, b encoding.UID) int { return bytes.Compare(a, b) })
	if err := p.Validate(); err != nil {
		return nil, nil, err
	}
	chosen, err := w.choose(p, sub)
	return p, chosen, err
}

func millis(t int64) int64 {
	if t < 1e10 {
		return t * 1000
	}
	return t
}

func number(n json.Number, otherwise int64) int64 {
	if n == "" {
		return otherwise
	}
	d, err := n.Float64()
	if err != nil {
		return otherwise
	}
	if i, err := n.Int64(); err == nil {
		return i
	}
	return int64(d)
}

// choose returns the series that the filters admit and that have rows in the
// scan range.
func (w *world) choose(p *scanplan.Plan, sub *subQuery) (chosen []series, err error) {
	match, err := w.filter(sub)
	if err != nil {
		return nil, err
	}
	for _, s := range w.series[sub.Metric] {
		in := slices.ContainsFunc(s.points.Time, func(ms int64) bool { return ms >= p.From*1000 && ms < p.To*1000 })
		if in && match(w.tags[string(s.span(w.schema))]) {
			chosen = append(chosen, s)
		}
	}
	return chosen, nil
}

// filter makes one predicate of all filters. As in OpenTSDB, several literal_or on the key with the
// lowest UID admit the values of all of them, and on another key only the last filter's.
func (w *world) filter(sub *subQuery) (func(tags map[string]string) bool, error) {
	var conditions []func(tags map[string]string) bool
	literals := map[string][]string{} // by key, what the row-key filter admits
	anyValue := map[string]bool{}
	lowest := ""
	for _, f := range sub.Filters {
		uid, ok := w.uids["tagk"][f.Tagk]
		if !ok {
			return nil, errBad
		}
		if lowest == "" || string(uid) < string(w.uids["tagk"][lowest]) {
			lowest = f.Tagk
		}
	}
	for _, f := range sub.Filters {
		conditions = append(conditions, func(tags map[string]string) bool { _, ok := tags[f.Tagk]; return ok })
		if f.Type == "literal_or" {
			values := strings.Split(strings.TrimRight(f.Filter, "|"), "|")
			for _, v := range values {
				if _, ok := w.uids["tagv"][v]; !ok {
					return nil, errBad
				}
			}
			if f.Tagk == lowest {
				values = append(values, literals[f.Tagk]...)
			}
			literals[f.Tagk], anyValue[f.Tagk] = values, false
			continue
		}
		if f.Tagk != lowest {
			anyValue[f.Tagk] = true
		}
		match, err := matcher(f.Type, f.Filter)
		if err != nil {
			return nil, err
		}
		conditions = append(conditions, func(tags map[string]string) bool { return match(tags[f.Tagk]) })
	}
	for k, values := range literals {
		if !anyValue[k] {
			conditions = append(conditions,
				func(tags map[string]string) bool { return slices.Contains(values, tags[k]) })
		}
	}
	keys := map[string]bool{}
	for _, f := range sub.Filters {
		keys[f.Tagk] = true
	}
	return func(tags map[string]string) bool {
		if sub.ExplicitTags && len(keys) > 0 && len(tags) != len(keys) {
			return false
		}
		return !slices.ContainsFunc(conditions, func(c func(map[string]string) bool) bool { return !c(tags) })
	}, nil
}

// matcher returns whether one filter admits a tag value.
func matcher(kind, filter string) (func(value string) bool, error) {
	list := strings.Split(strings.TrimRight(filter, "|"), "|")
	if i := strings.TrimPrefix(kind, "not_"); strings.HasPrefix(i, "i") {
		plain, err := matcher(strings.Replace(kind, "i"+i[1:], i[1:], 1), strings.ToLower(filter))
		return func(v string) bool { return plain(strings.ToLower(v)) }, err
	}
	switch kind {
	case "literal_or":
		return func(v string) bool { return slices.Contains(list, v) }, nil
	case "not_literal_or":
		return func(v string) bool { return !slices.Contains(list, v) }, nil
	case "regexp":
		re, err := regexp.Compile(filter)
		if err != nil {
			return nil, errBad
		}
		return re.MatchString, nil
	case "wildcard":
		return wildcard(filter)
	}
	return nil, errBad
}

func wildcard(filter string) (func(v string) bool, error) {
	if !strings.Contains(filter, "*") {
		return nil, errBad
	}
	front, behind := strings.HasPrefix(filter, "*"), strings.HasSuffix(filter, "*")
	middle := strings.Trim(filter, "*")
	pieces := strings.FieldsFunc(middle, func(r rune) bool { return r == '*' })
	return func(v string) bool {
		if len(pieces) == 0 {
			return true
		}
		if front && !behind && !strings.HasSuffix(v, pieces[len(pieces)-1]) ||
			behind && !front && !strings.HasPrefix(v, pieces[0]) {
			return false
		}
		at := 0
		for _, piece := range pieces {
			if at > len(v) || !strings.Contains(v[at:], piece) {
				return false
			}
			at += len(piece)
		}
		return true
	}, nil
}
