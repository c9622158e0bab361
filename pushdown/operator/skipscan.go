package operator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/store"
)

// bySkipScan makes ranges without the keys that cannot have the wanted tags, by known
// key prefixes: at least the empty one of each wanted tag. The ranges of several tags
// are intersected.
//
// The key pattern is still needed for the rows between known prefixes, unless there are
// none. (In region servers before 2.4.19, 2.5.9 and 2.6.1 it keeps the ranges from
// seeking, HBASE-28622: they read every row, as with a pattern alone.)
func (b *accessBuilder) bySkipScan(cache *access.PrefixCache) (Access, bool) {
	known := cache.Lookup(access.CacheKey(b.part))
	var r rangeList
	wanted := access.Wanted(b.plan)

	// clean: the ranges hold wanted rows only. Ranges cannot exclude rows with other
	// tags, as the pattern of an exact plan does.
	count, clean := 0, known.Clean && len(known.Prefixes) == len(wanted) && !b.plan.Exact
	for i, t := range wanted {
		p := b.prefixes(t, known, i, b.baseTimes())
		// Only the key pattern checks the tag: rows with unwanted values of it are in the ranges.
		if p == nil {
			clean = false
			continue
		}

		one := b.tagRanges(p, t.Values)
		if count += p.Len(); r != nil { // nil only before the first tag that has ranges
			one = access.Intersect(r, one)
		}

		if r = one; len(r) == 0 {
			return r.access("", nil), true // no key can hold wanted values of all these tags
		}

		// Clean holds for all known prefixes, and not for the empty one alone.
		clean = clean && p == known.Prefixes[i]
	}

	// No tag has few enough ranges, or those of all tags together are too many.
	if count == 0 || len(r) > maxRanges {
		return Access{}, false
	}

	a := r.access(fmt.Sprintf("%d ranges that can hold the wanted tags, known prefixes: %d; ", len(r), count), nil)
	if p, text := b.pattern(b.tags); clean {
		a.Reason += "no row lay elsewhere"
	} else {
		a.Filter.Pattern, a.Reason = p, a.Reason+text
	}
	// Few: dividing the part saves no time. r.access has set it, but there may be many unwanted
	// rows between known prefixes.
	a.Few = known.Few
	return a, true
}

// prefixes returns the prefixes to use for wanted tag i in so many hours: all that are known, or the
// empty one alone, or nil if even that makes too many ranges.
func (b *accessBuilder) prefixes(t scanplan.TagPredicate, known access.Known, i int, hours int64) *access.Prefixes {
	choices := []*access.Prefixes{access.NewPrefixes(b.plan.Schema, t.TagK)}
	if i < len(known.Prefixes) && known.Prefixes[i] != nil {
		choices = []*access.Prefixes{known.Prefixes[i], choices[0]}
	}

	for _, p := range choices {
		if hours*int64(p.MaxRanges(len(t.Values))) <= maxRanges {
			return p
		}
	}
	return nil
}

// tagRanges returns the ranges of the part for a wanted tag.
func (b *accessBuilder) tagRanges(p *access.Prefixes, values []encoding.UID) (r rangeList) {
	var ranges []store.KeyRange
	from, to := b.hours()
	for hour := from; hour < to; hour = b.plan.NextRow(hour) {
		ranges = p.Append(ranges[:0], b.keyHead(hour), values)
		for _, one := range ranges {
			r.add(b.part.Range, one.Start, one.Stop)
		}
	}
	return r
}

// RecordScan records in a prefix cache the cost of a part's scan that was executed elsewhere. An
// operator records its own scan, and of a long part that of each piece.
func RecordScan(cache *access.PrefixCache, part *scanplan.Part, s Stats) {
	if b := (&accessBuilder{plan: &part.Plan, part: part, tags: part.Plan.Tags}); b.probedRanges(cache) == 0 {
		recordScan(cache, part, s)
	}
}

func recordScan(cache *access.PrefixCache, part *scanplan.Part, s Stats) {
	b := &accessBuilder{plan: &part.Plan, part: part, tags: part.Plan.Tags}
	if len(access.Wanted(b.plan)) == 0 || s.Ranges == 0 {
		return // there was no skip scan
	}

	wanted := s.Rows - s.Rejected
	if b.firstTagOnly() {
		wanted = s.RowsScanned // prefixes would not help: none need to be learned
	}
	from, to := b.hours()
	cache.Record(access.CacheKey(b.part), access.ScanCost{
		From: from, To: to, Ranges: s.Ranges, Scanned: s.RowsScanned, Wanted: wanted, Took: s.ScanTime,
	})
}

// learnPrefixes learns the key prefixes of the wanted tags, if the cache finds it worth the cost,
// and returns the number of scans that it took. An error only ends the learning: if the store
// fails, the part's own scan will fail too.
func learnPrefixes(ctx context.Context, from store.Reader, part *scanplan.Part,
	cache *access.PrefixCache) (probes int64) {
	key := access.CacheKey(part)
	task, ok := cache.BeginLearning(key)
	if !ok {
		return 0
	}

	ctx, cancel := context.WithTimeout(ctx, task.Within)
	defer cancel()
	l := learner{ctx: ctx, from: from, part: part, task: task}
	prefixes, err := l.learn()
	cache.EndLearning(key, prefixes, err)
	return l.probes
}

// learner learns the key prefixes of one hour. It reads one row for each prefix.
type learner struct {
	ctx    context.Context
	from   store.Reader
	part   *scanplan.Part
	task   access.Learning
	hour   []byte // salt, metric and base time
	probes int64  // scans made
}

// learn returns the prefixes of each wanted tag; nil if there is no hour with rows.
func (l *learner) learn() (all []*access.Prefixes, err error) {
	if ok, err := l.findHour(); err != nil || !ok {
		return nil, err
	}
	for _, t := range access.Wanted(&l.part.Plan) {
		p, err := l.prefixes(t.TagK)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// findHour sets hour to one that has rows: the first one from the middle of the task's
// hours on, or else the first one before. It returns false if there is none.
func (l *learner) findHour() (bool, error) {
	b := &accessBuilder{plan: &l.part.Plan, part: l.part}
	middle := l.task.From + (l.task.To-l.task.From)/2
	middle -= middle % encoding.RowSeconds
	for _, r := range [][2]int64{{middle, l.task.To}, {l.task.From, middle}} {
		if r[0] >= r[1] {
			continue // of a single hour there is none before the middle
		}
		key, err := l.firstKey(b.keyHead(r[0]), b.keyHead(r[1]))
		if err != nil {
			return false, err
		}
		if n := l.part.Plan.Schema.HeadWidth(); len(key) >= n {
			l.hour = key[:n:n]
			return true, nil
		}
	}
	return false, nil
}

// prefixes returns the prefixes of a tag key in the hour, nil if they are too many. It reads
// one row of each, and then seeks to where the next one can begin.
func (l *learner) prefixes(tagk encoding.UID) (*access.Prefixes, error) {
	p := access.NewPrefixes(l.part.Plan.Schema, tagk)
	stop := encoding.PrefixEnd(l.hour)
	for at := l.hour; at != nil; {
		key, err := l.firstKey(at, stop)
		// No row is left in the hour.
		if err != nil || key == nil {
			return p, err
		}

		tags := key[len(l.hour):]
		if p.Add(tags); p.Len() > l.task.Limit {
			return nil, nil
		}
		at = l.nextPrefix(p.Of(tags), tags)
	}
	return p, nil
}

// nextPrefix returns where the next prefix can begin, given a row's tags and its
// prefix: after all rows with that prefix, or nil if there are no others.
func (l *learner) nextPrefix(prefix, tags []byte) []byte {
	key := slices.Concat(l.hour, prefix)
	switch {
	case len(prefix) == len(tags):
		// The row is its prefix and nothing else. Longer prefixes that begin with it may follow
		// immediately.
		return append(key, 0)
	case len(prefix) == 0:
		// The tag key or a larger one comes first, and so it does in all rows that
		// follow: the empty prefix is the last.
		return nil
	}
	return encoding.PrefixEnd(key)
}

// firstKey returns the first key in [start, stop), nil if there is none.
func (l *learner) firstKey(start, stop []byte) ([]byte, error) {
	l.probes++
	sc, err := l.from.Scan(l.ctx, store.Scan{Table: l.part.Plan.Table, Family: encoding.FamilyData,
		Start: start, Stop: stop, MaxRows: 1, KeysOnly: true})
	if err != nil {
		return nil, err
	}
	defer sc.Close()

	rows, err := sc.Next()
	if err == io.EOF {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return bytes.Clone(rows[0].Key), nil
}
