package promroutes

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"downpour/encoding"
	"downpour/gateway/api/httpapi/queryroutes"
	"downpour/gateway/extra/prometheus/names"
	"downpour/gateway/extra/prometheus/promql"
	"downpour/gateway/metadata/lookup"
	"downpour/gateway/uid"
)

// nameLabel is the label that has the metric.
const nameLabel = "__name__"

// listed is a request for names or series.
type listed struct {
	selectors  []string
	start, end time.Time
	limit      int
}

// listing reads the parameters of a request for names or series.
func (h *handlers) listing(r *request) (l listed, err error) {
	l.selectors = r.form["match[]"]
	if l.start, err = r.time("start", time.UnixMilli(0)); err != nil {
		return l, err
	}
	if l.end, err = r.time("end", h.Now()); err != nil {
		return l, err
	}
	l.limit, err = r.limit()
	return l, err
}

// listSeries calls use with the series that match.
func (h *handlers) listSeries(w http.ResponseWriter, r *request, l listed, use func([]promql.Labels) error) error {
	text := strings.Join(l.selectors, " ")
	if len(text) > promql.MaxText {
		return badData("the selectors have %d bytes, at most %d", len(text), promql.MaxText)
	}
	return h.read(w, r, text, l.start, l.end, func(ctx context.Context, a *queryroutes.Reading) error {
		src := &source{h: h, reading: a}
		found, err := h.engine.Series(ctx, src, l.selectors, l.start.UnixMilli(), l.end.UnixMilli())
		a.Computed()
		if err != nil {
			return classified(err)
		}
		a.Entry.Stats.Groups = len(found)
		return use(found)
	})
}

// series handles series.
func (h *handlers) series(w http.ResponseWriter, r *request) error {
	l, err := h.listing(r)
	if err != nil {
		return err
	}
	if len(l.selectors) == 0 {
		return badData("no match[] parameter provided")
	}
	return h.listSeries(w, r, l, func(found []promql.Labels) error { return writeList(w, found, l.limit) })
}

// writeList answers with a list, cut by the parameter limit.
func writeList[T any](w http.ResponseWriter, list []T, limit int) error {
	if limit > 0 && len(list) > limit {
		return writeData(w, list[:limit], truncated)
	}
	if list == nil {
		list = []T{} // in JSON a list, not null
	}
	return writeData(w, list)
}

// labels handles labels: the tag keys of the series that match, and without match[] those that there are.
func (h *handlers) labels(w http.ResponseWriter, r *request) error {
	l, err := h.listing(r)
	if err != nil {
		return err
	}
	if len(l.selectors) > 0 {
		return h.listSeries(w, r, l, func(found []promql.Labels) error {
			seen := map[string]bool{}
			for _, s := range found {
				s.Each(func(name, _ string) { seen[name] = true })
			}
			return writeList(w, slices.Sorted(maps.Keys(seen)), l.limit)
		})
	}

	ctx, cancel := context.WithTimeout(r.Context(), h.Timeout)
	defer cancel()
	entries, complete, err := h.names.Enumerate(ctx, encoding.UIDTagK, "", maxNames)
	if err == nil && !complete {
		err = uid.ErrTooLong
	}
	if err != nil {
		return err
	}
	list := []string{nameLabel}
	for _, e := range entries {
		if e.Name != names.None {
			list = append(list, names.Shown(e.Name))
		}
	}
	slices.Sort(list)
	return writeList(w, slices.Compact(list), l.limit)
}

// maxNames bounds a list of names.
const maxNames = 1_000_000

// labelValues handles label/NAME/values.
func (h *handlers) labelValues(w http.ResponseWriter, r *request, name string) error {
	l, err := h.listing(r)
	if err != nil {
		return err
	}
	if name, err = promql.LabelName(name); err != nil {
		return badData("%s", err.Error())
	}
	if name == nameLabel {
		return h.metrics(w, r, l)
	}
	if len(l.selectors) > 0 {
		return h.valuesOf(w, r, l, name)
	}

	ctx, cancel := context.WithTimeout(r.Context(), h.Timeout)
	defer cancel()
	limit := l.limit
	if limit == 0 {
		limit = maxNames
	}
	if err := h.metadata.AwaitRecorded(ctx); err != nil {
		return err
	}
	values, known, more := map[string]bool{}, false, false
	for _, key := range names.Of(name) {
		found, err := h.metadata.Lookup.Values(ctx, lookup.Query{}, key, limit)
		if nameless := (*uid.NoSuchNameError)(nil); errors.As(err, &nameless) {
			continue
		}
		if err != nil {
			return err
		}
		known, more = true, more || found.More
		for _, v := range found.Values {
			values[names.Shown(v)] = true
		}
	}
	list := slices.Sorted(maps.Keys(values))
	switch {
	case known && h.metadata.FlushMeta == nil && len(list) == 0:
		return writeData(w, []string{}, noMeta)
	case more:
		return writeData(w, list[:min(limit, len(list))], truncated)
	}
	return writeList(w, list, limit)
}

// noMeta is the warning where values of all metrics are wanted and puts record no series.
const noMeta = "the meta table has no series with this label: give match[], so that the rows of a metric are read"

// valuesOf answers with the values of a label in the series that match.
func (h *handlers) valuesOf(w http.ResponseWriter, r *request, l listed, name string) error {
	return h.listSeries(w, r, l, func(found []promql.Labels) error {
		values := map[string]bool{}
		for _, s := range found {
			if v := s.Get(name); v != "" {
				values[v] = true
			}
		}
		return writeList(w, slices.Sorted(maps.Keys(values)), l.limit)
	})
}

// metrics answers with the metrics that match. Where selectors say no more than the name, the series are not
// looked at: a metric is then there also if it has no point in these times.
func (h *handlers) metrics(w http.ResponseWriter, r *request, l listed) error {
	ctx, cancel := context.WithTimeout(r.Context(), h.Timeout)
	defer cancel()
	list, ok, err := h.engine.Metrics(ctx, &source{h: h}, l.selectors)
	if err != nil {
		return err
	}
	if !ok {
		return h.valuesOf(w, r, l, nameLabel)
	}
	return writeList(w, list, l.limit)
}

// noMetadata handles metadata: nothing is known of the types and units of metrics.
func (h *handlers) noMetadata(w http.ResponseWriter, _ *request) error {
	return writeData(w, struct{}{})
}

// buildInfo handles status/buildinfo, by which clients find out what they may ask.
func (h *handlers) buildInfo(w http.ResponseWriter, _ *request) error {
	return writeData(w, map[string]string{
		"version": promql.Version, "revision": "", "branch": "", "buildUser": "", "buildDate": "",
		"goVersion": runtime.Version(), "application": "Downpour",
	})
}
