package queryroutes

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/querylog"
	"downpour/gateway/graph"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/pushdown/process/memory"
)

// form is the form of an answer to /q.
type form string

// The forms. OpenTSDB has no svg.
const (
	asPage   form = ""
	asText   form = "ascii"
	asCounts form = "json"
	asPNG    form = "png"
	asSVG    form = "svg"
)

// formOf returns the form that a request names. The first in this order counts.
// Source: GraphHandler.execute, doGraph.
func formOf(values url.Values) form {
	for _, f := range []form{asText, asCounts, asPNG, asSVG} {
		if values.Has(string(f)) {
			return f
		}
	}
	return asPage
}

// IsPicture reports whether the answer to a request is a picture, or the error of one.
func IsPicture(r *http.Request) bool {
	f := formOf(r.URL.Query())
	return httpio.Path(r) == "q" && (f == asPNG || f == asSVG)
}

// graph handles /q: a picture of a query's answer, or its points as text. Its errors are
// pages, as those of OpenTSDB. Source: GraphHandler.
func (h *Handlers) graph(w http.ResponseWriter, r *http.Request) error {
	start := time.Now()
	err := h.answerGraph(w, r, start)
	h.count(err, start)
	if err != nil {
		h.writeGraphError(w, r, err)
	}
	return nil
}

// answerGraph answers a request. If it returns an error, nothing was sent.
func (h *Handlers) answerGraph(w http.ResponseWriter, r *http.Request, start time.Time) error {
	form := formOf(r.URL.Query())
	if err := graphMethod(r); err != nil {
		return err
	}
	if form == asPage {
		redirectToPage(w, r)
		return nil
	}
	g, err := h.parseGraph(r)
	if err != nil {
		return err
	}
	g.form, g.start = form, start

	// ctx bounds the work, request has no deadline: a client may take longer to read.
	request, entered := h.Limits.Enter(r.Context(), memory.Query)
	defer entered.Close()
	ctx, cancel := context.WithTimeout(request, h.Timeout)
	defer cancel()
	g.entry = h.Running.Begin(r, g.Query, entered.Cost, h.Now())
	err = h.runGraph(ctx, w, r.WithContext(request), g, entered.Computed)
	g.entry.Sent = err == nil
	h.finish(g.entry, &err)
	return err
}

// graphMethod refuses the verbs that are for other things. OpenTSDB takes them all.
func graphMethod(r *http.Request) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
		return nil
	}
	return httpio.MethodNotAllowed(r.Method)
}

// graphRequest is one request to /q.
type graphRequest struct {
	*query.Query
	options *graph.Options
	zone    *time.Location // of the picture's times
	form    form
	start   time.Time // of the request
	entry   *querylog.Entry

	groups [][]engine.Untrimmed // of each sub-query, once it has been read
}

// parseGraph reads a request, and reserves its memory. Checks come in OpenTSDB's order.
// Source: GraphHandler.doGraph.
func (h *Handlers) parseGraph(r *http.Request) (*graphRequest, error) {
	values := r.URL.Query()
	parser := query.Parser{Now: h.Now(), Zone: h.Zone, Fix: h.Fix, SubQueries: h.SubQueries}
	from, to, err := graphTimes(parser, r)
	if err != nil {
		return nil, err
	}
	g := &graphRequest{zone: h.Zone}
	if g.Query, err = parser.URI(values); err != nil {
		return nil, err
	}
	g.Explain, g.AllowPartial, g.Trace = false, false, false // there is no place for what they add

	if err := checkGraphTimes(from, to); err != nil {
		return nil, err
	}
	// In place of the times that parser.URI has read without tz.
	g.Start, g.End, g.WholeSeconds = from*1000, to*1000, true
	if g.options, err = graph.Parse(values, len(g.Queries)); err != nil {
		return nil, err
	}
	if zone, ok := query.Zone(httpio.LastValue(r, "tz")); ok {
		g.zone = zone
	}
	return g, memory.Reserve(r.Context(), g.Size())
}

// graphTimes returns the times of a picture, in seconds.
func graphTimes(parser query.Parser, r *http.Request) (from, to int64, err error) {
	text, err := httpio.RequiredValue(r, "start")
	if err != nil {
		return 0, 0, err
	}
	if from, err = parser.TimeIn(text, httpio.LastValue(r, "tz")); err != nil {
		return 0, 0, query.Bad("%s", err.Error())
	}
	to = parser.Now.UnixMilli()
	if text := httpio.LastValue(r, "end"); text != "" {
		if to, err = parser.TimeIn(text, httpio.LastValue(r, "tz")); err != nil {
			return 0, 0, query.Bad("%s", err.Error())
		}
	}
	return from / 1000, to / 1000, nil
}

// checkGraphTimes refuses times, in seconds, that a picture cannot have.
// Source: Plot, its constructor.
func checkGraphTimes(from, to int64) error {
	switch {
	case from < 0 || from > math.MaxUint32:
		return query.Bad("Invalid start time: %d", from)
	case to < 0 || to > math.MaxUint32:
		return query.Bad("Invalid end time: %d", to)
	case from >= to:
		return query.Bad("start time (%d) is greater than or equal to end time: %d", from, to)
	}
	return nil
}

// runGraph reads the points and answers. computed is called once only sending is left.
func (h *Handlers) runGraph(ctx context.Context, w http.ResponseWriter, r *http.Request, g *graphRequest,
	computed func()) error {
	// Earlier, by 0 ms, makes the queries untrimmed: the text has all points of the rows that
	// were read, and the counts count them.
	reads := make([]*query.Query, len(g.Queries))
	for i := range reads {
		read, err := g.Earlier(i, 0)
		if err != nil {
			return err
		}
		reads[i] = read
	}

	var err error
	if g.groups, g.entry.Stats, err = h.Engine.RunUntrimmed(ctx, reads,
		engine.Options{Plans: g.entry.Plans}); err != nil {
		return err
	}
	g.entry.Stats.PointsOut = g.points()
	setIncompleteHeader(w, &g.entry.Stats) //fault:damaged-rows-of-pictures-untold TestFix_damagedElsewhere
	switch g.form {
	case asText:
		computed()
		return h.sendASCII(w, r, g)
	case asCounts:
		computed()
		return h.sendGraphCounts(w, g)
	}

	body, err := h.drawGraph(ctx, g)
	computed()
	if err != nil {
		return err
	}
	return sendPicture(w, g, h.Now(), body)
}

// points is the number of points that were made, inside the query's times or not.
func (g *graphRequest) points() (n int) {
	for _, groups := range g.groups {
		for i := range groups {
			n += groups[i].Points.Len()
		}
	}
	return n
}

// maxAge is how many seconds a client may keep an answer. One that ends more than an hour ago, by
// dates, is kept for a day: points that are put into it later are seen that late. Source:
// GraphHandler.computeMaxAge.
func (g *graphRequest) maxAge(now time.Time) int64 {
	const settled = 3600 // s
	relative := func(text string) bool { return strings.HasSuffix(strings.ToLower(text), "-ago") }
	from, to := g.Start/1000, g.End/1000
	switch seconds := now.Unix(); {
	case g.entry.Stats.Damaged > 0:
		return 0 // once its rows are repaired there is more to see
	case to > seconds:
		return 0 // its end is in the future
	case to < seconds-settled && !relative(g.StartText) && !relative(g.EndText):
		return 86400
	}
	// About a thousandth of the time shown, so that little is missing at its end.
	return (to - from) >> 10
}
