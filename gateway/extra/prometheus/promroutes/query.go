package promroutes

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/queryroutes"
	"downpour/gateway/extra/prometheus/promql"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
)

// maxSteps bounds the points of each series of a range query, as Prometheus does.
const maxSteps = 11_000

// instant handles query.
func (h *handlers) instant(w http.ResponseWriter, r *request) error {
	at, err := r.time("time", h.Now())
	if err != nil {
		return err
	}
	return h.answer(w, r, promql.Times{Start: at, End: at})
}

// ranged handles query_range.
func (h *handlers) ranged(w http.ResponseWriter, r *request) error {
	var t promql.Times
	var err error
	if t.Start, err = r.requiredTime("start"); err != nil {
		return err
	}
	if t.End, err = r.requiredTime("end"); err != nil {
		return err
	}
	if t.End.Before(t.Start) {
		return badData(`invalid parameter "end": end timestamp must not be before start time`)
	}
	if t.Step, err = r.duration("step"); err != nil {
		return err
	}
	if t.Step < time.Millisecond {
		return badData(`invalid parameter "step": got %q, want at least a millisecond`, r.get("step"))
	}
	if t.End.Sub(t.Start)/t.Step > maxSteps {
		return badData("exceeded maximum resolution of 11,000 points per timeseries. " +
			"Try decreasing the query resolution (?step=XX)")
	}
	return h.answer(w, r, t)
}

// answer answers a query.
func (h *handlers) answer(w http.ResponseWriter, r *request, t promql.Times) error {
	text := r.get("query")
	limit, err := r.limit()
	if err != nil {
		return err
	}
	if r.form.Has("lookback_delta") {
		if t.Lookback, err = r.duration("lookback_delta"); err != nil {
			return err
		}
	}
	if len(text) > promql.MaxText {
		return badData("the query has %d bytes, at most %d", len(text), promql.MaxText)
	}
	return h.read(w, r, text, t.Start, t.End, func(ctx context.Context, a *queryroutes.Reading) error {
		src := &source{h: h, reading: a}
		if r.get("explain") == "true" {
			src.explain = &[]engine.Explained{}
		}
		result, err := h.engine.Query(ctx, src, text, t)
		a.Computed()
		if err != nil {
			return classified(err)
		}
		defer result.Close()
		if src.explain != nil {
			return httpio.WriteJSON(w, r.Request, http.StatusOK, *src.explain)
		}
		return send(w, a, result, limit)
	})
}

// read does the work of a request that reads points or series, as a query: bounded, listed and logged. text is what
// operators see of it.
func (h *handlers) read(w http.ResponseWriter, r *request, text string, start, end time.Time,
	work func(context.Context, *queryroutes.Reading) error) error {
	q := &query.Query{
		StartText: strconv.FormatInt(start.UnixMilli(), 10), EndText: strconv.FormatInt(end.UnixMilli(), 10),
		Start: start.UnixMilli(), End: end.UnixMilli(),
		Queries: []query.SubQuery{{Aggregator: "promql", Metric: text}},
	}
	return h.Read(w, r.Request, r.start, q, func(ctx context.Context, a *queryroutes.Reading) error {
		if r.form.Has("timeout") {
			timeout, err := r.duration("timeout")
			if err != nil {
				return err
			}
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		return work(ctx, a)
	})
}

// send writes the answer to a query.
func send(w http.ResponseWriter, a *queryroutes.Reading, result *promql.Result, limit int) error {
	warnings := result.Warnings
	if limit > 0 && result.Truncate(limit) {
		warnings = append(warnings, truncated)
	}
	series, points := result.Series()
	a.Entry.Stats.Groups, a.Entry.Stats.PointsOut = series, points
	if err := a.AnswerLimits.CheckJSON(points); err != nil {
		return err
	}
	queryroutes.SetIncompleteHeader(w, &a.Entry.Stats)

	w.Header().Set("Content-Type", "application/json")
	work := a.WorkTime()
	write := func(b []byte) error { return work.Write(w, b) }
	err := write([]byte(`{"status":"success","data":{"resultType":"` + result.Type() + `","result":`))
	if err == nil {
		err = result.WriteJSON(write)
	}
	end := []byte("}") // of the data
	for _, notes := range []struct {
		name  string
		texts []string
	}{{"warnings", warnings}, {"infos", result.Infos}} {
		if len(notes.texts) > 0 {
			list, _ := json.Marshal(notes.texts)
			end = append(append(end, `,"`+notes.name+`":`...), list...)
		}
	}
	if err == nil {
		err = write(append(end, '}'))
	}
	return queryroutes.Abort(err)
}

// truncated is Prometheus' warning of an answer that is cut by the parameter limit.
const truncated = "results truncated due to limit"

// limit returns the parameter limit, 0 for none.
func (r *request) limit() (int, error) {
	text := r.get("limit")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, badData(`invalid parameter "limit": got %q, want a number that is not negative`, text)
	}
	return n, nil
}

func (r *request) requiredTime(name string) (time.Time, error) {
	if r.get(name) == "" {
		return time.Time{}, badData(`invalid parameter %q: cannot parse "" to a valid timestamp`, name)
	}
	return r.time(name, time.Time{})
}

// furthest is the last time, in seconds, that a parameter may have, and its negative the first.
const furthest = 1 << 40

// time returns a parameter as a time: seconds since 1970, with a fraction, or a date as RFC 3339 has it.
func (r *request) time(name string, otherwise time.Time) (time.Time, error) {
	text := r.get(name)
	if text == "" {
		return otherwise, nil
	}
	if s, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(s) <= furthest {
		whole, part := math.Modf(s)
		return time.UnixMilli(int64(whole)*1000 + int64(math.Round(part*1000))).UTC(), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	return time.Time{}, badData("invalid parameter %q: cannot parse %q to a valid timestamp", name, text)
}

// duration returns a parameter as a duration: seconds with a fraction, or as 1h30m.
func (r *request) duration(name string) (time.Duration, error) {
	text := r.get(name)
	if s, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(s) < furthest/1000 {
		return time.Duration(s * float64(time.Second)), nil
	}
	if d, err := promql.ParseDuration(text); err == nil {
		return d, nil
	}
	return 0, badData("invalid parameter %q: cannot parse %q to a valid duration", name, text)
}

// format handles format_query.
func (h *handlers) format(w http.ResponseWriter, r *request) error {
	text, err := h.engine.Format(r.Context(), r.get("query"))
	if err != nil {
		return err
	}
	return writeData(w, text)
}
