package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"downpour/encoding"
	"downpour/gateway/metadata/last"
	"downpour/gateway/query"
)

// lastRequest asks for newest points. Source: QueryRpc.LastPointQuery.
type lastRequest struct {
	Queries []struct {
		Metric string            `json:"metric"`
		Tags   map[string]scalar `json:"tags"`
		TSUIDs []string          `json:"tsuids"`
	} `json:"queries"`
	ResolveNames bool    `json:"resolveNames"`
	BackScan     integer `json:"backScan"`
}

// lastPoint is one newest point; its value is text. Source: IncomingDataPoint.
type lastPoint struct {
	Metric    string            `json:"metric,omitempty"`
	Timestamp int64             `json:"timestamp"` // ms
	Value     string            `json:"value"`
	Tags      map[string]string `json:"tags,omitempty"`
	TSUID     encoding.UID      `json:"tsuid"`
}

// queryLast handles /api/query/last. Source: QueryRpc.handleLastDataPointQuery.
func (a *API) queryLast(w http.ResponseWriter, r *http.Request) error {
	q, resolve, err := parseLast(w, r)
	if err != nil {
		return err
	}
	switch n := len(q.Subs); {
	case n == 0:
		return bad("Missing sub queries")
	case n > query.MaxSubQueries:
		return query.TooMuch("Too many sub queries: %d, at most %d", n, query.MaxSubQueries)
	}
	ctx, cancel := a.within(r)
	defer cancel()
	if q.Back <= 0 {
		a.flushMeta(ctx)
	}
	found, err := a.Last.Find(ctx, q)
	if err != nil {
		return err
	}
	out := make([]lastPoint, len(found))
	for i, p := range found {
		if err := ctx.Err(); err != nil {
			return err
		}
		out[i] = lastPoint{Timestamp: p.Time, Value: string(appendValue(nil, p.Value, false)), TSUID: p.TSUID}
		if p.Value.Float { // NaN is no JSON here, but text
			out[i].Value = strings.Trim(out[i].Value, `"`)
		}
		if resolve {
			if err := a.nameLast(ctx, &out[i]); err != nil {
				return err
			}
		}
	}
	return writeJSON(w, r, http.StatusOK, out)
}

// nameLast adds the names of a point's series.
func (a *API) nameLast(ctx context.Context, p *lastPoint) error {
	series, err := a.Find.Name(ctx, p.TSUID)
	p.Metric, p.Tags = series.Metric, series.Tags
	return err
}

func parseLast(w http.ResponseWriter, r *http.Request) (q last.Query, resolve bool, err error) {
	switch r.Method {
	case http.MethodGet:
		return lastParameters(r)
	case http.MethodPost:
	default:
		return q, false, notAllowed(r)
	}
	body, err := readBody(w, r)
	if err != nil {
		return q, false, err
	}
	var in lastRequest
	if err := parseContent(body, &in); err != nil {
		return q, false, err
	}
	q.Back = int(in.BackScan)
	for _, s := range in.Queries {
		sub := last.Sub{Metric: s.Metric, Tags: texts(s.Tags)}
		if sub.TSUIDs, err = lastTSUIDs(s.TSUIDs); err != nil {
			return q, false, bad("%v", err)
		}
		q.Subs = append(q.Subs, sub)
	}
	return q, in.ResolveNames, nil
}

// lastParameters reads the request line: series by name come first.
func lastParameters(r *http.Request) (q last.Query, resolve bool, err error) {
	values := r.URL.Query()
	if values.Has("back_scan") {
		if q.Back, err = strconv.Atoi(lastValue(r, "back_scan")); err != nil {
			return q, false, bad("Unable to parse back_scan parameter")
		}
	}
	for _, text := range values["timeseries"] {
		s := last.Sub{}
		if s.Metric, s.Tags, err = parseSeries(text); err != nil {
			return q, false, broken("%v", err)
		}
		q.Subs = append(q.Subs, s)
	}
	for _, text := range values["tsuids"] {
		s := last.Sub{}
		if s.TSUIDs, err = lastTSUIDs(strings.Split(text, ",")); err != nil {
			return q, false, bad("%v", err)
		}
		q.Subs = append(q.Subs, s)
	}
	return q, values.Has("resolve"), nil
}

func lastTSUIDs(texts []string) (out []encoding.UID, err error) {
	for _, text := range texts {
		u, err := hexUID(text)
		if err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	return out, nil
}
