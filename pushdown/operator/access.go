package operator

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/store"
)

// Limits of a filter. Beyond them the store returns all rows, and the operator drops those that the
// plan does not admit.
const (
	// maxRanges bounds the key ranges of one scan: each costs a seek and about 60
	// bytes of the request.
	maxRanges = 20_000
	// maxPatternValues bounds the tag values of a key pattern, which is sent to HBase
	// as a regular expression and compiled for each region.
	maxPatternValues = 4096
	// fewKeys is how many rows that are named by key are few, see Access: of a point every ten seconds
	// they have some 200,000.
	fewKeys = 512
)

// Access is the access path of a part: how its rows are selected in the store, and
// why so.
type Access struct {
	Filter store.RowFilter
	Reason string
	// Nothing is set if no row can match: there is no need to scan.
	Nothing bool
	// Few is set if few rows are read, so that dividing the work saves no time.
	Few bool
	// ProbedRanges, if not 0, is the number of key ranges that each hour can have, of a part with so
	// many hours that a longPartScanner probes its rows to decide where it seeks to these ranges. Filter
	// is then for the rows where it does not.
	ProbedRanges int
}

// ChooseAccess chooses the access path of a part by its cost on HBase, without
// knowing how many rows there are:
//
//   - keys known (TSUIDs), or the first tag of every key known: key ranges, to which a
//     region server seeks. Seeking costs at worst what a key pattern costs;
//   - some tag restricted to values: a skip scan, which is key ranges without
//     keys that cannot have the tag (see package access), and a key pattern, which a region
//     server applies to every row of the ranges;
//   - otherwise no filter: one that keeps most rows costs more than it saves.
//
// If an hour-by-hour choice makes many key ranges, a probe of the rows decides; see access.NeedsProbe.
//
// Ranges by hour and first tag are sound only if no wanted series has a tag key that
// sorts before that tag: its rows would not be read, and no later check would notice.
// Two things prove it: the plan admits no other tag keys (Exact), or the tag key has
// UID 1, the smallest that is ever assigned.
//
// prefixes may be nil. It changes the cost of a part and never its answer.
func ChooseAccess(part *scanplan.Part, prefixes *access.PrefixCache) Access {
	b := &accessBuilder{plan: &part.Plan, part: part, tags: part.Plan.Tags}
	if n := b.probedRanges(prefixes); n > 0 {
		return b.byProbes(n)
	}
	return b.choose(prefixes)
}

// ChooseFilter chooses the access path of a part for a caller that scans its rows in one pass.
func ChooseFilter(part *scanplan.Part) Access {
	return (&accessBuilder{plan: &part.Plan, part: part, tags: part.Plan.Tags}).choose(nil)
}

// choose returns the access path of a part whose rows are not probed, or of a sub-part of a longPartScanner
// that seeks.
func (b *accessBuilder) choose(prefixes *access.PrefixCache) Access {
	if b.impossible() {
		return Access{Nothing: true, Reason: "no tag value is admitted"}
	}

	// Predicates of a plan with TSUIDs are checked when rows are admitted.
	if len(b.plan.TSUIDs) > 0 {
		return b.byTSUID()
	}
	if a, ok := b.byFirstTag(); ok {
		a.Few = !prefixes.Lookup(access.CacheKey(b.part)).Many
		return b.withOffHourKeys(a)
	}

	a, ok := b.bySkipScan(prefixes)
	if !ok {
		a = b.byPattern()
	}
	return b.withOffHourKeys(a)
}

// accessBuilder builds the access path of a part.
type accessBuilder struct {
	plan *scanplan.Plan
	part *scanplan.Part
	tags []scanplan.TagPredicate // the plan's, or those that follow from its TSUIDs
}

// impossible reports whether a predicate admits no value at all. In a store.Want an
// empty list means any value, so such a predicate must not become one.
func (b *accessBuilder) impossible() bool {
	for _, t := range b.tags {
		if t.Op == scanplan.In && len(t.Values) == 0 {
			return true
		}
	}
	return false
}

// byTSUID names the row of each series and hour by its key. The salt is the part's:
// a series may have rows under another salt than its own, written before the number
// of buckets was changed, and each salt bucket is searched for it.
func (b *accessBuilder) byTSUID() Access {
	tags := b.tsuidTags()
	if len(tags) == 0 {
		return Access{Nothing: true, Reason: "no TSUID is of the plan's metric"}
	}
	if n := b.baseTimes() * int64(len(tags)); n > maxRanges {
		a := b.manyTSUIDs(tags)
		a.Reason = fmt.Sprintf("%d rows are too many to name by key (at most %d); %s", n, maxRanges, a.Reason)
		return a
	}

	// TSUIDs ascend and all keys of an hour begin alike, so the keys ascend. The range
	// of a single key ends with the key and a zero byte, which is the next key.
	from, to := b.hours()
	r := make(rangeList, 0, b.baseTimes()*int64(len(tags)))
	for hour := from; hour < to; hour = b.plan.NextRow(hour) {
		head := b.keyHead(hour)
		for _, t := range tags {
			next := slices.Concat(head, t, []byte{0})
			r.add(b.part.Range, next[:len(next)-1], next)
		}
	}

	a := r.access(fmt.Sprintf("%d rows by key: TSUIDs are given", len(r)), nil)
	a.Few = len(r) <= fewKeys
	return b.withOffHourKeys(a)
}

// manyTSUIDs is for more rows than can be named by key. It uses a key pattern that
// restricts each tag that all series have to the values that they have. The admission of
// rows rejects series that have these values in another combination.
func (b *accessBuilder) manyTSUIDs(tags [][]byte) Access {
	s := b.plan.Schema
	values := map[string]map[string]bool{}
	carriers := map[string]int{}
	for _, t := range tags {
		for _, p := range s.AppendPairs(nil, t) {
			if values[string(p.K)] == nil {
				values[string(p.K)] = map[string]bool{}
			}
			values[string(p.K)][string(p.V)] = true
			carriers[string(p.K)]++
		}
	}

	// A tag that some series do not have must not be in the pattern: it would
	// exclude them.
	b.tags = nil
	for _, k := range sortedKeys(values) {
		if carriers[k] == len(tags) {
			p := scanplan.TagPredicate{TagK: encoding.UID(k), Op: scanplan.In}
			for _, v := range sortedKeys(values[k]) {
				p.Values = append(p.Values, encoding.UID(v))
			}
			b.tags = append(b.tags, p)
		}
	}

	return b.byPattern()
}

// tsuidTags returns the tags of those TSUIDs that are of the plan's metric.
func (b *accessBuilder) tsuidTags() (tags [][]byte) {
	for _, t := range b.plan.TSUIDs {
		if metric, rest, err := b.plan.Schema.SplitTSUID(t); err == nil && bytes.Equal(metric, b.plan.Metric) {
			tags = append(tags, rest)
		}
	}
	return tags
}

// firstTagOnly reports whether ranges of hour and first tag are sound (see
// ChooseAccess), and no other predicate lists values, so that a skip scan could not
// do better.
func (b *accessBuilder) firstTagOnly() bool {
	return len(access.Wanted(b.plan)) == 1 && b.tags[0].Op == scanplan.In &&
		(b.plan.Exact || encoding.UIDNumber(b.tags[0].TagK) == 1)
}

// byFirstTag makes ranges of hour and first tag, if that is sound and there are not too many.
func (b *accessBuilder) byFirstTag() (Access, bool) {
	if !b.firstTagOnly() {
		return Access{}, false
	}

	first := b.tags[0]
	if b.baseTimes()*int64(len(first.Values)) > maxRanges {
		return Access{}, false
	}

	// With an exact plan of one tag the pair is the end of the key, and the range is
	// that key.
	wholeKey := b.plan.Exact && len(b.tags) == 1
	var r rangeList
	from, to := b.hours()
	for hour := from; hour < to; hour = b.plan.NextRow(hour) {
		head := append(b.keyHead(hour), first.TagK...)
		for _, v := range first.Values {
			key := append(bytes.Clone(head), v...)
			if wholeKey {
				r.add(b.part.Range, key, append(bytes.Clone(key), 0))
			} else {
				r.add(b.part.Range, key, encoding.PrefixEnd(key))
			}
		}
	}

	reason := fmt.Sprintf("%d ranges of hour and tag %s: its UID is the smallest", len(r), first.TagK)
	if b.plan.Exact {
		reason = fmt.Sprintf("%d ranges of hour and tag %s: no other tag can come before it", len(r), first.TagK)
	}
	return r.access(reason, b.patternAfterFirst(wholeKey)), true
}

// patternAfterFirst returns the key pattern for the tags after the first, which the
// ranges restrict already; nil if none is needed.
func (b *accessBuilder) patternAfterFirst(wholeKey bool) *store.KeyPattern {
	switch {
	case wholeKey:
		return nil
	// An exact pattern counts the tags of a key: the first one must be among its wants.
	case b.plan.Exact:
		p, _ := b.pattern(b.tags)
		return p
	}
	p, _ := b.pattern(b.tags[1:])
	return p
}

// byPattern selects rows by a key pattern, or all rows if that would not pay.
func (b *accessBuilder) byPattern() Access {
	p, reason := b.pattern(b.tags)
	return Access{Filter: store.RowFilter{Pattern: p}, Reason: reason}
}

// pattern returns the key pattern for tags, nil if it would not pay, and the reason.
func (b *accessBuilder) pattern(tags []scanplan.TagPredicate) (*store.KeyPattern, string) {
	s := b.plan.Schema
	p := &store.KeyPattern{Head: s.HeadWidth(), NameLen: s.TagKWidth, ValueLen: s.TagVWidth, Exact: b.plan.Exact}

	values := 0
	for _, t := range tags {
		w := store.Want{Name: t.TagK}
		// The other predicates require the tag. The operator drops the values that NotIn excludes.
		if t.Op == scanplan.In {
			values += len(t.Values)
			for _, v := range t.Values {
				w.Values = append(w.Values, v)
			}
		}
		p.Wants = append(p.Wants, w)
	}

	switch {
	case values == 0:
		return nil, "all rows: no tag is restricted to some values"
	case values > maxPatternValues:
		return nil, fmt.Sprintf("all rows: %d tag values are too many for a pattern (at most %d)", values,
			maxPatternValues)
	}
	return p, fmt.Sprintf("key pattern of %d tags and %d values", len(p.Wants), values)
}

// hours returns the base times that rows of the part can have, half-open. Keys of the
// part's range that end before the base time do not narrow the plan's hours.
func (b *accessBuilder) hours() (from, to int64) {
	at := b.plan.Schema.BaseTimeAt()
	from, to = max(b.plan.From, keyTime(b.part.Range.Start, at)), b.plan.To

	// A stop in another salt bucket or metric does not give the last hour.
	if k := b.part.Range.Stop; len(k) > at && bytes.Equal(k[:at], b.part.Range.Start[:at]) {
		last := keyTime(k, at)
		if base := b.plan.RowBase(last); len(k) > at+encoding.BaseTimeWidth || last != base {
			last = b.plan.NextRow(base) // the part stops inside that row
		}
		to = min(to, last)
	}

	from = b.plan.RowBase(from)
	return from, max(from, to)
}

// keyTime returns the base time in a row key, which begins there, in s. In a key that is cut off, as the
// bound of a region may be, zeros are missing.
func keyTime(key []byte, at int) int64 {
	var base [encoding.BaseTimeWidth]byte
	copy(base[:], key[min(len(key), at):])
	return int64(binary.BigEndian.Uint32(base[:]))
}

// baseTimes is the number of base times that rows of the part can have.
func (b *accessBuilder) baseTimes() int64 {
	from, to := b.hours()
	return b.plan.Rows(from, to)
}

// keyHead returns a row key of the part's salt bucket without tags. It has room for
// the tags.
func (b *accessBuilder) keyHead(hour int64) []byte {
	s := b.plan.Schema
	key := make([]byte, 0, s.HeadWidth()+s.MaxTags*s.TagWidth())
	key = append(key, b.part.Range.Start[:s.SaltWidth]...)
	key = append(key, b.plan.Metric...)
	return binary.BigEndian.AppendUint32(key, encoding.KeyTime(hour))
}

// rangeList collects ranges that ascend. Ranges that touch become one.
type rangeList []store.KeyRange

// add appends the keys of [start, stop) that are in the part and not in the range before.
func (r *rangeList) add(part scanplan.KeyRange, start, stop []byte) {
	if bytes.Compare(start, part.Start) < 0 {
		start = part.Start
	}
	if n := len(*r); n > 0 && bytes.Compare(start, (*r)[n-1].Stop) < 0 {
		start = (*r)[n-1].Stop
	}

	// An empty stop is the table's end.
	if len(part.Stop) > 0 && (len(stop) == 0 || bytes.Compare(stop, part.Stop) > 0) {
		stop = part.Stop
	}
	if len(stop) > 0 && bytes.Compare(start, stop) >= 0 {
		return
	}

	if n := len(*r); n > 0 && bytes.Equal((*r)[n-1].Stop, start) {
		(*r)[n-1].Stop = stop
		return
	}
	*r = append(*r, store.KeyRange{Start: start, Stop: stop})
}

// access returns the access path of ranges and a pattern.
func (r rangeList) access(reason string, p *store.KeyPattern) Access {
	// A filter without ranges would select all rows.
	if len(r) == 0 {
		return Access{Nothing: true, Reason: "no wanted key is in the part"}
	}
	return Access{Filter: store.RowFilter{Ranges: r, Pattern: p}, Reason: reason, Few: true}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
