package write

import (
	"context"
	"iter"
	"slices"

	"downpour/encoding"
)

// maxAhead is how many points PrepareNames reads: enough to share the steps by which names get
// UIDs, and little work that is done twice. It stops earlier after maxAheadBytes of new names,
// because their memory is not counted.
const (
	maxAhead      = 512
	maxAheadBytes = 256 << 10
)

// PrepareNames gives UIDs to the new names of a validated point that is about to be
// resolved, and of the points after it that have already arrived. A client that sends one
// new series usually sends many, and one by one each new name costs three writes, one after
// another. Other names get their UIDs, or their errors, when they are resolved.
//
// following yields the points after the first, validated, and nil for one that will be refused, because
// that gives no name a UID. It is not called if all names of the first point are known. PrepareNames
// returns how many points it has read of following: the caller calls it again after these.
func (w *Writer) PrepareNames(ctx context.Context, first *Point, following iter.Seq[*Point]) (read int) {
	n := newNames{series: w.series}
	if n.add(first); n.empty() {
		return 0 // a new series of known names
	}

	for p := range following {
		if p != nil {
			n.add(p)
		}
		if read++; read == maxAhead || n.bytes > maxAheadBytes {
			break
		}
	}

	for kind, names := range n.byKind {
		if len(names) > 1 { // one is cheaper by Assign
			w.series.cfg.Names.Prepare(ctx, encoding.UIDKind(kind), names)
		}
	}
	return read
}

// newNames are names that may have no UID.
type newNames struct {
	series *SeriesCache
	byKind [3][]string // by encoding.UIDKind; a name may occur more than once
	bytes  int         // of all names
}

// add adds those names of a point that are not in memory. It leaves out all of a point that may be refused
// when it is resolved.
func (n *newNames) add(p *Point) {
	auto := n.series.cfg.Auto
	if !n.accepted(encoding.UIDMetric, p.Metric, auto.Metrics) {
		return
	}
	for i, t := range p.Tags {
		duplicate := slices.ContainsFunc(p.Tags[:i], func(o Tag) bool { return o.K == t.K })
		if duplicate || !n.accepted(encoding.UIDTagK, t.K, auto.TagKs) ||
			!n.accepted(encoding.UIDTagV, t.V, auto.TagVs) {
			return
		}
	}

	n.addName(encoding.UIDMetric, p.Metric)
	for _, t := range p.Tags {
		n.addName(encoding.UIDTagK, t.K)
		n.addName(encoding.UIDTagV, t.V)
	}
}

// accepted reports whether a point with a name is certainly not refused for it: new names of the kind are
// assigned UIDs, or the name's is in memory.
func (n *newNames) accepted(kind encoding.UIDKind, name string, assign bool) bool {
	return assign || n.series.cfg.Names.Cached(kind, name)
}

// addName adds a name unless its UID is in memory.
func (n *newNames) addName(kind encoding.UIDKind, name string) {
	if !n.series.cfg.Names.Cached(kind, name) {
		n.byKind[kind] = append(n.byKind[kind], name)
		n.bytes += len(name)
	}
}

func (n *newNames) empty() bool {
	return !slices.ContainsFunc(n.byKind[:], func(names []string) bool { return len(names) > 0 })
}
