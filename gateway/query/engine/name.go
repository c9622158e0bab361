package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query"
	"downpour/gateway/query/merge"
	"downpour/gateway/uid"
)

// nameGroups returns groups with names in place of their UIDs.
func (e *Engine) nameGroups(ctx context.Context, q *query.Query, p subPlan, groups []merge.Group) ([]Result, error) {
	// A metric without a name is no error if there is nothing to write it with.
	metric, err := e.cfg.Names.Name(ctx, encoding.UIDMetric, p.Plan.Metric)
	if err != nil && len(groups) > 0 {
		return nil, nameless(err)
	}
	names, err := e.tagNames(ctx, groups)
	if err != nil {
		return nil, err
	}

	out := make([]Result, len(groups))
	for i := range groups {
		g := &groups[i]
		r := Result{
			Query:         p.sub.Index,
			Key:           string(g.Key),
			Points:        g.Points,
			HasNotes:      len(g.Notes) > 0,
			TagUIDs:       g.Tags,
			AggregateUIDs: g.Aggregated,
		}
		r.NaNIsNull = p.Plan.Downsample != nil && p.Plan.Downsample.Fill == scanplan.FillNull
		// OpenTSDB writes a group that has annotations and no points without the
		// metric's name.
		if len(g.Spans) > 0 {
			r.Metric = metric + g.Suffix
		}
		// The lines of one group of histograms need separate keys.
		if g.Suffix != "" {
			r.Key += "\x00" + g.Suffix
		}
		for _, t := range g.Tags {
			r.Tags = append(r.Tags, Tag{names[encoding.UIDTagK][string(t.K)], names[encoding.UIDTagV][string(t.V)]})
		}
		for _, k := range g.Aggregated {
			r.AggregateTags = append(r.AggregateTags, names[encoding.UIDTagK][string(k)])
		}
		if q.ShowTSUIDs {
			r.TSUIDs = hexTSUIDs(g.TSUIDs)
		}
		// HasNotes includes those outside of the query: the answer then has an empty list.
		r.Annotations = annotationsInside(g.Notes, q)
		out[i] = r
	}
	return out, nil
}

func hexTSUIDs(tsuids []encoding.UID) []string {
	out := make([]string, len(tsuids))
	for i, t := range tsuids {
		out[i] = t.String()
	}
	return out
}

// tagNames looks up the names of all tag keys and values of the groups, in one call
// for each kind. The result is indexed by kind and UID.
func (e *Engine) tagNames(ctx context.Context, groups []merge.Group) (out [3]map[string]string, err error) {
	uids := [3]map[string]bool{encoding.UIDTagK: {}, encoding.UIDTagV: {}}
	for i := range groups {
		for _, t := range groups[i].Tags {
			uids[encoding.UIDTagK][string(t.K)] = true
			uids[encoding.UIDTagV][string(t.V)] = true
		}
		for _, k := range groups[i].Aggregated {
			uids[encoding.UIDTagK][string(k)] = true
		}
	}

	for _, kind := range []encoding.UIDKind{encoding.UIDTagK, encoding.UIDTagV} {
		var list []encoding.UID
		for u := range uids[kind] {
			list = append(list, encoding.UID(u))
		}
		names, err := e.cfg.Names.Names(ctx, kind, list)
		if err != nil {
			return out, nameless(err)
		}
		out[kind] = make(map[string]string, len(list))
		for i, u := range list {
			out[kind][string(u)] = names[i]
		}
	}
	return out, nil
}

// nameless returns the error of a query whose rows have a UID without a name, as after a name was
// deleted: it fails as it would by what the rows hold. It returns any other error.
func nameless(err error) error {
	var unknown *uid.NoSuchIDError
	if errors.As(err, &unknown) {
		return query.RunFault("%v", unknown)
	}
	return err
}

// annotationsInside returns the annotations that start inside the query, as the API
// writes them. They are sorted by start, compared as the stored number, in seconds or
// ms alike; those of equal start keep the order of their spans.
// Source: HttpJsonSerializer, its annotations; Annotation.compareTo.
func annotationsInside(notes [][]byte, q *query.Query) (out []json.RawMessage) {
	var parsed []encoding.Annotation
	for _, n := range notes {
		// A damaged annotation does not fail the query: it is no point.
		if a, err := encoding.ParseAnnotation(n); err == nil {
			parsed = append(parsed, a)
		}
	}
	slices.SortStableFunc(parsed, func(a, b encoding.Annotation) int { return cmp.Compare(a.StartTime, b.StartTime) })

	for _, a := range parsed {
		start := a.StartTime
		if start < 1<<32 { // seconds
			start *= 1000
		}
		if start < q.Start || start > q.End {
			continue
		}
		// Texts and numbers can always be written.
		if text, err := json.Marshal(a); err == nil {
			out = append(out, text)
		}
	}
	return out
}
