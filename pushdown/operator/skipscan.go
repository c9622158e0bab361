package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/store"
)

// bySkipScan leaves out what cannot hold the wanted tags, whichever heads are known:
// at least the empty one of each wanted tag. The ranges of several tags are
// intersected. The pattern remains, for the rows between known heads, as long as
// there may be many. (In region servers before 2.4.19, 2.5.9 and 2.6.1 it keeps the
// ranges from seeking, HBASE-28622: they look at every row, as with a pattern alone.)
func (b *accessBuilder) bySkipScan(memory *access.Memory) (Access, bool) {
	known := memory.Look(access.Subject(b.part))
	var r rangeList
	wanted := access.Wanted(b.plan)
	heads, clean := 0, known.Clean && len(known.Heads) == len(wanted) && !b.plan.Exact
	for i, t := range wanted {
		h := b.prefixes(t, known, i)
		if h == nil {
			clean = false
			continue
		}
		one := b.tagRanges(h, t.Values)
		if heads += h.Len(); r != nil {
			one = access.Intersect(r, one)
		}
		if r = one; len(r) == 0 {
			return r.access("", nil), true
		}
		clean = clean && h == known.Heads[i]
	}
	if heads == 0 || len(r) > maxRanges {
		return Access{}, false
	}
	a := r.access(fmt.Sprintf("%d ranges that can hold the wanted tags, known heads: %d; ", len(r), heads), nil)
	if p, text := b.pattern(b.tags); clean {
		a.Reason += "no row lay elsewhere"
	} else {
		a.Filter.Pattern, a.Reason = p, a.Reason+text
	}
	a.Few = known.Few
	return a, true
}

// prefixes are those to be used for the i-th wanted tag: those that are known, else
// the empty one, nil if even that makes too many ranges.
func (b *accessBuilder) prefixes(t scanplan.TagPredicate, known access.Known, i int) *access.Prefixes {
	choices := []*access.Prefixes{access.NewPrefixes(b.plan.Schema, t.TagK)}
	if i < len(known.Heads) && known.Heads[i] != nil {
		choices = []*access.Prefixes{known.Heads[i], choices[0]}
	}
	for _, h := range choices {
		if b.affords(h.Count(len(t.Values))) {
			return h
		}
	}
	return nil
}

// tagRanges are the part's ranges for a wanted tag.
func (b *accessBuilder) tagRanges(h *access.Prefixes, values []encoding.UID) (r rangeList) {
	var ranges []store.KeyRange
	from, to := b.hours()
	for hour := from; hour < to; hour += encoding.RowSeconds {
		ranges = h.Append(ranges[:0], b.head(hour), values)
		for _, one := range ranges {
			r.add(b.part.Range, one.Start, one.Stop)
		}
	}
	return r
}

// affords tells whether a scan can have so many ranges in each of its hours; if only
// fewer hours can, it notes the number of pieces.
func (b *accessBuilder) affords(each int) bool {
	from, to := b.hours()
	hours := int((to - from) / encoding.RowSeconds)
	if hours*each <= maxRanges {
		return true
	}
	if n := maxRanges / each; n > 0 {
		b.pieces = max(b.pieces, (hours+n-1)/n)
	}
	return false
}

// Note tells a memory how a part went that was executed elsewhere; an operator
// with a memory tells its own.
func Note(memory *access.Memory, part *scanplan.Part, s Stats) {
	b := &accessBuilder{plan: &part.Plan, part: part, tags: part.Plan.Tags}
	if len(access.Wanted(b.plan)) == 0 || s.Ranges == 0 || b.firstTagOnly() {
		return // there is nothing to learn
	}
	from, to := b.hours()
	memory.Note(access.Subject(b.part), access.Walk{
		From: from, To: to, Ranges: s.Ranges, Looked: s.RowsScanned, Wanted: s.Rows - s.Rejected, Took: s.ScanTime,
	})
}

// learn finds out the heads of the wanted tags, if the memory says that it is
// worth it, and returns how many scans that took. A fault is none of the part's:
// its own scan will meet it, or not.
func learn(ctx context.Context, from store.Reader, part *scanplan.Part, memory *access.Memory) (probes int64) {
	name := access.Subject(part)
	task, ok := memory.Begin(name)
	if !ok {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, task.Within)
	defer cancel()
	l := learner{ctx: ctx, from: from, part: part, task: task}
	heads, err := l.learn()
	memory.Learned(name, heads, err)
	return l.probes
}

// learner walks over the heads of one hour, one row each.
type learner struct {
	ctx    context.Context
	from   store.Reader
	part   *scanplan.Part
	task   access.Task
	hour   []byte // salt, metric and base time
	probes int64
}

func (l *learner) learn() (heads []*access.Prefixes, err error) {
	if ok, err := l.findHour(); err != nil || !ok {
		return nil, err
	}
	for _, t := range access.Wanted(&l.part.Plan) {
		h, err := l.prefixes(t.TagK)
		if err != nil {
			return nil, err
		}
		heads = append(heads, h)
	}
	return heads, nil
}

// findHour looks for an hour with rows, in the middle of the task's or behind it,
// else before.
func (l *learner) findHour() (bool, error) {
	b := &accessBuilder{plan: &l.part.Plan, part: l.part}
	middle := l.task.From + (l.task.To-l.task.From)/2
	middle -= middle % encoding.RowSeconds
	for _, r := range [][2]int64{{middle, l.task.To}, {l.task.From, middle}} {
		if r[0] >= r[1] {
			continue
		}
		key, err := l.first(b.head(r[0]), b.head(r[1]))
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

// prefixes are those of a tag key in the hour, nil if they are too many.
func (l *learner) prefixes(tagk encoding.UID) (*access.Prefixes, error) {
	h := access.NewPrefixes(l.part.Plan.Schema, tagk)
	stop := encoding.PrefixEnd(l.hour)
	for at := l.hour; at != nil; {
		key, err := l.first(at, stop)
		if err != nil || key == nil {
			return h, err
		}
		tags := key[len(l.hour):]
		if h.Add(tags); h.Len() > l.task.Limit {
			return nil, nil
		}
		at = l.behind(h.Of(tags), tags)
	}
	return h, nil
}

// behind is where the next head can be found: behind all rows with this one; of a
// row that ends with its head, longer ones may follow at once. It is nil behind
// the empty head, which is the last.
func (l *learner) behind(head, tags []byte) []byte {
	key := slices.Concat(l.hour, head)
	switch {
	case len(head) == len(tags):
		return append(key, 0)
	case len(head) == 0:
		return nil
	}
	return encoding.PrefixEnd(key)
}

// first is the first key in [start, stop), nil if there is none.
func (l *learner) first(start, stop []byte) ([]byte, error) {
	l.probes++
	sc, err := l.from.Scan(l.ctx, store.Scan{Table: l.part.Plan.Table, Family: encoding.FamilyData,
		Start: start, Stop: stop, MaxRows: 1, KeysOnly: true})
	if err != nil {
		return nil, err
	}
	defer sc.Close()
	rows, err := sc.Next()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return bytes.Clone(rows[0].Key), nil
}
