package annotation

import (
	"bytes"
	"context"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// DeleteRange removes the annotations of a series, or the global ones for an empty TSUID,
// that begin between two times in ms, both inclusive. It returns how many it removed.
// The start in the JSON counts, not the time in the qualifier, which differs if the start
// in seconds is a multiple of 1000.
// Source: Annotation.deleteRange.
func (n *Catalog) DeleteRange(ctx context.Context, tsuid string, from, to int64) (int, error) {
	switch {
	case to < 1:
		return 0, &RefusedError{"The end timestamp has not been set"}
	case to < from:
		return 0, &RefusedError{"The end timestamp cannot be less than the start timestamp"}
	}

	var deletions []store.Mutation
	collect := func(row []byte, c store.Cell) error {
		if start, ok := startOf(c); ok && start >= from && start <= to {
			deletions = append(deletions, store.Mutation{
				Kind:      store.DeleteCell,
				Row:       bytes.Clone(row),
				Family:    encoding.FamilyData,
				Qualifier: bytes.Clone(c.Qualifier),
			})
		}
		return nil
	}

	if err := n.visit(ctx, tsuid, from/1000, to/1000, collect); err != nil || len(deletions) == 0 {
		return 0, err
	}

	return len(deletions), n.cfg.Store.Apply(ctx, n.cfg.Table, deletions)
}

// startOf returns the start of an annotation in ms. ok is false if it cannot be parsed;
// then it is not deleted.
func startOf(c store.Cell) (int64, bool) {
	a, err := encoding.ParseAnnotation(c.Value)
	if err != nil {
		return 0, false
	}
	// A start of more than 32 bits is in ms.
	if a.StartTime>>32 == 0 {
		return a.StartTime * 1000, true
	}
	return a.StartTime, true
}

// visit calls each with the annotations of a series, or the global ones for an empty
// TSUID, from the hour of one time to the hour of another, in seconds.
func (n *Catalog) visit(ctx context.Context, tsuid string, from, to int64, each func([]byte, store.Cell) error) error {
	if tsuid == "" {
		return n.scan(ctx, n.globalRange(from, to), nil, each)
	}

	raw, err := parseTSUID(tsuid)
	if err != nil {
		return err
	}
	metric, tags, err := n.cfg.Schema.SplitTSUID(raw)
	if err != nil {
		return &RefusedError{err.Error()}
	}

	s := n.cfg.Schema
	// The range ends before Stop: with a zero byte more that is the key behind the last hour's.
	rows := store.KeyRange{
		Start: s.AppendRowKey(nil, metric, hourOf(from), tags),
		Stop:  append(s.AppendRowKey(nil, metric, hourOf(to), tags), 0),
	}

	// Between this series' hours lie the rows of others; Exact leaves out those that have other
	// tags in addition to these.
	keys := &store.KeyPattern{Head: s.HeadWidth(), NameLen: s.TagKWidth, ValueLen: s.TagVWidth, Exact: true}
	for _, p := range s.AppendPairs(nil, tags) {
		keys.Wants = append(keys.Wants, store.Want{Name: p.K, Values: [][]byte{p.V}})
	}

	return n.scan(ctx, rows, keys, each)
}
