package lookup

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// wanted is a query as UIDs.
type wanted struct {
	metric encoding.UID // nil: any
	// wants are the wanted keys and their values, ascending, several values of
	// one key being alternatives.
	wants []store.Want
	// values, if there are no wants, are tag values of which a series has one
	// under any key. Beside wanted keys OpenTSDB takes no notice of them, by a
	// mistake that its answers depend on: neither do we.
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
	w.arrange(byKey)
	return w, nil
}

// add notes one pair; of a key that may have any value, no value counts.
func (w *wanted) add(byKey map[string][][]byte, k, v encoding.UID) {
	switch values, there := byKey[string(k)]; {
	case k == nil && v != nil:
		w.values = append(w.values, v)
	case k == nil: // neither: it restricts nothing
	case v == nil:
		byKey[string(k)] = [][]byte{}
	case !there || len(values) > 0:
		byKey[string(k)] = append(values, v)
	}
}

func (w *wanted) arrange(byKey map[string][][]byte) {
	for k, values := range byKey {
		slices.SortFunc(values, bytes.Compare)
		w.wants = append(w.wants, store.Want{Name: []byte(k), Values: slices.CompactFunc(values, bytes.Equal)})
	}
	slices.SortFunc(w.wants, func(a, b store.Want) int { return bytes.Compare(a.Name, b.Name) })
}

// pattern is what a store can select by itself.
func (w *wanted) pattern(s encoding.Schema, meta bool) *store.KeyPattern {
	if len(w.wants) == 0 {
		return nil
	}
	head := s.MetricWidth
	if !meta {
		head = s.HeadWidth()
	}
	return &store.KeyPattern{Head: head, NameLen: s.TagKWidth, ValueLen: s.TagVWidth, Wants: w.wants}
}

// admits judges a series: a store may return more than the pattern admits.
func (w *wanted) admits(s encoding.Schema, tsuid encoding.UID) bool {
	if w.metric != nil && !bytes.Equal(tsuid[:s.MetricWidth], w.metric) {
		return false
	}
	if p := w.pattern(s, true); p != nil {
		return p.Matches(tsuid)
	}
	if len(w.values) == 0 {
		return true
	}
	return slices.ContainsFunc(s.AppendPairs(nil, tsuid[s.MetricWidth:]), func(p encoding.TagPair) bool {
		return slices.ContainsFunc(w.values, func(v encoding.UID) bool { return bytes.Equal(v, p.V) })
	})
}

// MetaRows are the rows of the meta table for the series of a metric that have
// all of some tags: a range, and a filter inside it.
// Source: TSUIDQuery.getScanner.
func (f *Finder) MetaRows(ctx context.Context, metric string, tags map[string]string) (store.KeyRange, store.RowFilter, error) {
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
	w.arrange(byKey)
	return store.KeyRange{Start: w.metric, Stop: encoding.PrefixEnd(w.metric)}, store.RowFilter{Pattern: w.pattern(f.cfg.Schema, true)}, nil
}

func (f *Finder) pair(ctx context.Context, name, value string) (k, v encoding.UID, err error) {
	if k, err = f.cfg.Names.Resolve(ctx, encoding.UIDTagK, name); err == nil {
		v, err = f.cfg.Names.Resolve(ctx, encoding.UIDTagV, value)
	}
	return k, v, err
}

// sortedKeys makes the first unknown name the same each time.
func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// TSUID is the series of exactly these tags, whether it exists or not.
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
