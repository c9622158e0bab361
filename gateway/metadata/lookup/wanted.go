package lookup

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// wanted is a query in UIDs.
type wanted struct {
	metric encoding.UID // nil for all
	// wants are the wanted keys with their values, both ascending. A series needs every
	// key, with any of the values of the key.
	wants []store.Want
	// values are wanted values under any key. They count only if there are no wants:
	// next to wanted keys OpenTSDB ignores them by mistake, and so do we, to give the
	// same answers.
	values []encoding.UID
}

// resolve looks up the names of a query.
func (f *Finder) resolve(ctx context.Context, q Query) (*wanted, error) {
	w := &wanted{}
	var err error
	if q.Metric != nil && *q.Metric != "" && *q.Metric != Any {
		if w.metric, err = f.cfg.Names.Resolve(ctx, encoding.UIDMetric, *q.Metric); err != nil {
			return nil, err
		}
	}

	byKey := map[string][][]byte{}
	for _, t := range q.Tags {
		var k, v encoding.UID
		if !open(t.Key) {
			if k, err = f.cfg.Names.Resolve(ctx, encoding.UIDTagK, *t.Key); err != nil {
				return nil, err
			}
		}
		if !open(t.Value) {
			if v, err = f.cfg.Names.Resolve(ctx, encoding.UIDTagV, *t.Value); err != nil {
				return nil, err
			}
		}
		w.add(byKey, k, v)
	}

	w.sortWants(byKey)
	return w, nil
}

// add adds one pair of key and value; each may be nil. A key without a value
// may have any, whatever other pairs say.
func (w *wanted) add(byKey map[string][][]byte, k, v encoding.UID) {
	// Pairs of one key widen what its value may be: first one value, then several, then any.
	switch values, there := byKey[string(k)]; {
	case k == nil && v != nil:
		w.values = append(w.values, v)
	case k == nil: // a pair without both restricts nothing
	case v == nil: // an empty list is any value
		byKey[string(k)] = [][]byte{}
	case !there || len(values) > 0: // a key that may have any value stays so
		byKey[string(k)] = append(values, v)
	}
}

// sortWants sets wants from the values by key.
func (w *wanted) sortWants(byKey map[string][][]byte) {
	for k, values := range byKey {
		slices.SortFunc(values, bytes.Compare)
		w.wants = append(w.wants, store.Want{Name: []byte(k), Values: slices.CompactFunc(values, bytes.Equal)})
	}
	slices.SortFunc(w.wants, func(a, b store.Want) int { return bytes.Compare(a.Name, b.Name) })
}

// pattern returns the part of the query that a store can apply to keys, nil for none.
// head is the width of what a key has before its tags: of a TSUID, and so of a row of
// the meta table, that of the metric.
func (w *wanted) pattern(s encoding.Schema, head int) *store.KeyPattern {
	if len(w.wants) == 0 {
		return nil
	}
	return &store.KeyPattern{Head: head, NameLen: s.TagKWidth, ValueLen: s.TagVWidth, Wants: w.wants}
}

// admits reports whether a series matches. It applies the pattern, too, because a store
// may return rows that the pattern does not admit.
func (w *wanted) admits(s encoding.Schema, tsuid encoding.UID) bool {
	if w.metric != nil && !bytes.Equal(tsuid[:s.MetricWidth], w.metric) {
		return false
	}
	if p := w.pattern(s, s.MetricWidth); p != nil {
		return p.Matches(tsuid)
	}
	if len(w.values) == 0 {
		return true
	}

	return slices.ContainsFunc(s.AppendPairs(nil, tsuid[s.MetricWidth:]), func(p encoding.TagPair) bool {
		return slices.ContainsFunc(w.values, func(v encoding.UID) bool { return bytes.Equal(v, p.V) })
	})
}

// MetaRows returns the rows of the meta table for the series of a metric that have all
// the tags given: a range, and a filter inside it.
// Source: TSUIDQuery.getScanner.
func (f *Finder) MetaRows(
	ctx context.Context, metric string, tags map[string]string,
) (store.KeyRange, store.RowFilter, error) {
	w := &wanted{}
	var err error
	if w.metric, err = f.cfg.Names.Resolve(ctx, encoding.UIDMetric, metric); err != nil {
		return store.KeyRange{}, store.RowFilter{}, err
	}

	byKey := map[string][][]byte{}
	for _, name := range sortedKeys(tags) {
		k, v, err := f.pair(ctx, name, tags[name])
		if err != nil {
			return store.KeyRange{}, store.RowFilter{}, err
		}
		w.add(byKey, k, v)
	}

	w.sortWants(byKey)
	return store.KeyRange{
		Start: w.metric,
		Stop:  encoding.PrefixEnd(w.metric),
	}, store.RowFilter{Pattern: w.pattern(f.cfg.Schema, f.cfg.Schema.MetricWidth)}, nil
}

// pair returns the UIDs of a tag.
func (f *Finder) pair(ctx context.Context, name, value string) (k, v encoding.UID, err error) {
	if k, err = f.cfg.Names.Resolve(ctx, encoding.UIDTagK, name); err == nil {
		v, err = f.cfg.Names.Resolve(ctx, encoding.UIDTagV, value)
	}
	return k, v, err
}

// sortedKeys returns the keys in order, so that of several unknown names the error
// always names the same.
func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// TSUID returns the TSUID of the series with exactly these tags, whether that exists or
// not.
// Source: TSUIDQuery.tsuidFromMetric.
func (f *Finder) TSUID(ctx context.Context, metric string, tags map[string]string) (encoding.UID, error) {
	if len(tags) == 0 {
		return nil, fmt.Errorf("Tags cannot be null or empty when getting a TSUID")
	}
	m, err := f.cfg.Names.Resolve(ctx, encoding.UIDMetric, metric)
	if err != nil {
		return nil, err
	}

	pairs := make([]encoding.TagPair, 0, len(tags))
	for _, name := range sortedKeys(tags) {
		k, v, err := f.pair(ctx, name, tags[name])
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, encoding.TagPair{K: k, V: v})
	}

	return f.cfg.Schema.AppendTags(append(encoding.UID{}, m...), pairs), nil
}
