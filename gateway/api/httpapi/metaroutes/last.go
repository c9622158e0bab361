package metaroutes

import (
	"context"
	"net/http"
	"strings"

	"downpour/encoding"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/java"
	"downpour/gateway/metadata/last"
	"downpour/gateway/query"
)

// lastRequest is a request for newest points. Source: QueryRpc.LastPointQuery.
type lastRequest struct {
	Queries []struct {
		Metric string            `json:"metric"`
		Tags   map[string]string `json:"tags"`
		TSUIDs []string          `json:"tsuids" jackson:"strict"`
	} `json:"queries"`
	ResolveNames bool  `json:"resolveNames"`
	BackScan     int32 `json:"backScan" jackson:"strict"`
}

// lastPoint is one newest point; its value is a string. Source: IncomingDataPoint.
type lastPoint struct {
	Metric    string            `json:"metric,omitempty"`
	Timestamp int64             `json:"timestamp"` // ms
	Value     string            `json:"value"`
	Tags      map[string]string `json:"tags,omitempty"`
	TSUID     encoding.UID      `json:"tsuid"`
}

// queryLast handles /api/query/last. Source: QueryRpc.handleLastDataPointQuery.
func (h *Handlers) queryLast(w http.ResponseWriter, r *http.Request) error {
	q, resolve, err := parseLast(w, r)
	if err != nil {
		return err
	}
	switch n := len(q.Subs); {
	case n == 0:
		return httpio.BadRequest("Missing sub queries")
	case n > query.MaxSubQueries:
		return query.TooMuch("Too many sub queries: %d, at most %d", n, query.MaxSubQueries)
	}

	ctx, cancel := h.timeout(r)
	defer cancel()
	if q.Back <= 0 {
		// The counters in the metadata then determine the hours to read.
		if err := h.AwaitRecorded(ctx); err != nil {
			return err
		}
	}
	found, err := h.Last.Find(ctx, q)
	if err != nil {
		return err
	}

	out := make([]lastPoint, len(found))
	for i, p := range found {
		if err := ctx.Err(); err != nil { // without names to read, nothing else notices the end
			return err
		}
		out[i] = lastPoint{
			Timestamp: p.Time,
			Value:     string(httpio.AppendValue(nil, p.Value, httpio.NaNIsText)),
			TSUID:     p.TSUID,
		}
		if p.Value.Float { // NaN has quotes, which the string does not hold
			out[i].Value = strings.Trim(out[i].Value, `"`)
		}
		if resolve {
			if err := h.nameLast(ctx, &out[i]); err != nil {
				return err
			}
		}
	}
	return httpio.WriteJSON(w, r, http.StatusOK, out)
}

// nameLast adds the names of a point's series.
func (h *Handlers) nameLast(ctx context.Context, p *lastPoint) error {
	series, err := h.Lookup.Name(ctx, p.TSUID)
	p.Metric, p.Tags = series.Metric, series.Tags
	return err
}

// parseLast reads the request from the parameters or from the body. resolve asks for
// metric and tags of each point.
func parseLast(w http.ResponseWriter, r *http.Request) (q last.Query, resolve bool, err error) {
	switch r.Method {
	case http.MethodGet:
		return lastParameters(r)
	case http.MethodPost:
	default:
		return q, false, httpio.MethodNotAllowed(r.Method)
	}

	body, err := httpio.ReadBody(w, r)
	if err != nil {
		return q, false, err
	}
	var in lastRequest
	if err := httpio.ParseJSON(body, &in); err != nil {
		return q, false, err
	}

	q.Back = int(in.BackScan)
	for _, s := range in.Queries {
		sub := last.Sub{Metric: s.Metric, Tags: s.Tags}
		if sub.TSUIDs, err = lastTSUIDs(s.TSUIDs); err != nil {
			return q, false, httpio.BadRequest("%v", err)
		}
		q.Subs = append(q.Subs, sub)
	}
	return q, in.ResolveNames, nil
}

// lastParameters reads the parameters. Series given by name come before those given
// by TSUID. A name that cannot be parsed is a 500, see httpio.InternalError.
func lastParameters(r *http.Request) (q last.Query, resolve bool, err error) {
	values := r.URL.Query()
	if values.Has("back_scan") {
		back, err := java.ParseInt(httpio.LastValue(r, "back_scan"))
		if err != nil {
			return q, false, httpio.BadRequest("Unable to parse back_scan parameter")
		}
		q.Back = int(back)
	}

	for _, text := range values["timeseries"] {
		s := last.Sub{}
		if s.Metric, s.Tags, err = parseSeries(text); err != nil {
			return q, false, httpio.InternalError("%v", err)
		}
		q.Subs = append(q.Subs, s)
	}

	for _, text := range values["tsuids"] {
		s := last.Sub{}
		if s.TSUIDs, err = lastTSUIDs(strings.Split(text, ",")); err != nil {
			return q, false, httpio.BadRequest("%v", err)
		}
		q.Subs = append(q.Subs, s)
	}
	return q, values.Has("resolve"), nil
}

// lastTSUIDs reads TSUIDs in hex.
func lastTSUIDs(texts []string) (out []encoding.UID, err error) {
	for _, text := range texts {
		u, err := encoding.ParseHexUID(text)
		if err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	return out, nil
}
