package write

import (
	"context"
	"slices"

	"downpour/encoding"
)

// NewNames collects names of points that are about to be resolved, so that those without
// UIDs get them together. A client that sends new series sends many in a row; resolved one
// by one, each new name costs three writes, one after another.
type NewNames struct {
	series *SeriesCache
	names  [3][]string // by kind
}

// NewNames returns an empty list.
func (w *Writer) NewNames() *NewNames { return &NewNames{series: w.series} }

// Add adds those of a point's validated names that may have no UID. It leaves out a point
// that Resolve would refuse, so that no name gets a UID because of it.
func (n *NewNames) Add(metric string, tags []Tag) {
	auto := n.series.cfg.Auto
	for i, t := range tags {
		if slices.ContainsFunc(tags[:i], func(o Tag) bool { return o.K == t.K }) {
			return // a duplicate tag
		}
		// A name that gets no UID on put may be unknown, so it must be known already.
		if !n.admits(encoding.UIDTagK, t.K, auto.TagKs) || !n.admits(encoding.UIDTagV, t.V, auto.TagVs) {
			return
		}
	}
	if !n.admits(encoding.UIDMetric, metric, auto.Metrics) {
		return
	}

	n.addName(encoding.UIDMetric, metric)
	for _, t := range tags {
		n.addName(encoding.UIDTagK, t.K)
		n.addName(encoding.UIDTagV, t.V)
	}
}

// admits reports whether a name has a UID or may get one on put.
func (n *NewNames) admits(kind encoding.UIDKind, name string, assign bool) bool {
	return assign || n.series.cfg.Names.Cached(kind, name)
}

func (n *NewNames) addName(kind encoding.UIDKind, name string) {
	if !n.series.cfg.Names.Cached(kind, name) {
		n.names[kind] = append(n.names[kind], name)
	}
}

// Empty reports whether no name was added that may have no UID.
func (n *NewNames) Empty() bool {
	return len(n.names[encoding.UIDMetric])+len(n.names[encoding.UIDTagK])+len(n.names[encoding.UIDTagV]) == 0
}

// Assign gives UIDs to the collected names, as far as it can: what is left out, Resolve
// assigns or refuses.
func (n *NewNames) Assign(ctx context.Context) {
	for _, kind := range []encoding.UIDKind{encoding.UIDMetric, encoding.UIDTagK, encoding.UIDTagV} {
		if len(n.names[kind]) > 1 {
			n.series.cfg.Names.Prepare(ctx, kind, n.names[kind])
		}
	}
}
