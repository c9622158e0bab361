// Package graphroutes is /q: it reads a request for a picture, has its metrics read as a query's
// are, and answers with a picture, with the points as text, or with their numbers.
// Source: GraphHandler.
package graphroutes

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"downpour/gateway"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/queryroutes"
	"downpour/gateway/extra/graph"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/rpc/auth"
)

// Settings are those of the route.
type Settings struct {
	// AllowImages lets pages of all sites show pictures of /q, while no token is needed.
	AllowImages bool `env:"DOWNPOUR_ALLOW_IMAGES" envDefault:"true"`
}

// SetDefaults does nothing.
func (*Settings) SetDefaults(*gateway.Config) {}

// Validate returns nil: any value will do.
func (*Settings) Validate(*gateway.Config) error { return nil }

// New returns the route.
func New(s *Settings) gateway.Extra {
	return gateway.Extra{Name: "graph", Settings: s, Open: s.open}
}

func (s *Settings) open(_ context.Context, c *gateway.Core) (gateway.Parts, error) {
	h := &handlers{c.Queries}
	q := httpio.Endpoint{
		Scope:   auth.Read,
		Serve:   h.Followed(h.serve),
		Reads:   httpio.GetOrPost,
		OwnTime: true,
		Absent:  httpio.WriteOnly,
	}
	if s.AllowImages {
		q.Picture = isPicture
	}
	return gateway.Parts{Routes: map[string]httpio.Endpoint{"q": q}}, nil
}

// handlers answer the route, with what answers queries.
type handlers struct{ *queryroutes.Handlers }

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

// formOf returns the form that a request asks for. The first in this order counts.
// Source: GraphHandler.execute, doGraph.
func formOf(values url.Values) form {
	for _, f := range []form{asText, asCounts, asPNG, asSVG} {
		if values.Has(string(f)) {
			return f
		}
	}
	return asPage
}

// isPicture reports whether the answer to a request is a picture, or the error of one.
func isPicture(r *http.Request) bool {
	f := formOf(r.URL.Query())
	return f == asPNG || f == asSVG
}

// serve handles /q. Its errors are pages, as those of OpenTSDB.
func (h *handlers) serve(w http.ResponseWriter, r *http.Request) error {
	start := time.Now()
	err := h.answer(w, r, start)
	h.Count(err, start)
	if err != nil {
		h.writeError(w, r, err)
	}
	return nil
}

// answer answers a request. If it returns an error, nothing was sent.
func (h *handlers) answer(w http.ResponseWriter, r *http.Request, start time.Time) error {
	if err := checkMethod(r); err != nil {
		return err
	}
	form := formOf(r.URL.Query())
	if form == asPage {
		redirectToPage(w, r)
		return nil
	}
	p, err := h.parse(r)
	if err != nil {
		return err
	}
	p.form, p.start = form, start
	return h.Read(w, r, start, p.Query,
		func(ctx context.Context, a *queryroutes.Reading) error { return p.run(ctx, w, a) })
}

// checkMethod refuses the verbs that are for other things. OpenTSDB takes them all.
func checkMethod(r *http.Request) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
		return nil
	}
	return httpio.MethodNotAllowed(r.Method)
}

// request is one request to /q.
type request struct {
	*query.Query
	options *graph.Options
	zone    *time.Location // of the picture's times
	form    form
	start   time.Time // of the request
	stats   *engine.Stats

	groups [][]engine.Untrimmed // of each sub-query, once it has been read
}

// parse reads a request, and reserves its memory. Checks come in OpenTSDB's order.
// Source: GraphHandler.doGraph.
func (h *handlers) parse(r *http.Request) (*request, error) {
	values := r.URL.Query()
	parser := h.Parser()
	from, to, err := times(parser, r)
	if err != nil {
		return nil, err
	}
	values.Del("tz") // it is the picture's, and no query knows it
	g := &request{zone: h.Zone}
	if g.Query, err = parser.URI(values); err != nil {
		return nil, err
	}
	g.Explain, g.AllowPartial, g.Trace = false, false, false // there is no place for what they add

	if err := checkTimes(from, to); err != nil {
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

// times returns the times of a picture, in seconds.
func times(parser query.Parser, r *http.Request) (from, to int64, err error) {
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

// checkTimes refuses times, in seconds, that a picture cannot have.
// Source: Plot, its constructor.
func checkTimes(from, to int64) error {
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

// run reads the points and answers.
func (g *request) run(ctx context.Context, w http.ResponseWriter, a *queryroutes.Reading) error {
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
	g.groups, a.Entry.Stats, err = a.Engine.RunUntrimmed(ctx, reads, engine.Options{Plans: a.Entry.Plans})
	if err != nil {
		return err
	}
	g.stats = &a.Entry.Stats
	g.stats.PointsOut = g.points()
	queryroutes.SetIncompleteHeader(w, g.stats) //fault:damaged-rows-of-pictures-untold TestFix_damagedPictures
	switch g.form {
	case asText:
		a.Computed()
		return g.sendASCII(w, a)
	case asCounts:
		a.Computed()
		return g.sendCounts(w)
	}

	body, err := g.draw(ctx, a.Annotations)
	a.Computed()
	if err != nil {
		return err
	}
	return g.sendPicture(w, a.Now(), body)
}

// points is the number of points that were made, inside the query's times or not.
func (g *request) points() (n int) {
	for _, groups := range g.groups {
		for i := range groups {
			n += groups[i].Points.Len()
		}
	}
	return n
}

// maxAge is how many seconds a client may keep an answer. One that is in the past for more
// than an hour, by dates, is kept for a day: points that are put into it later are seen so
// late. Source: GraphHandler.computeMaxAge.
func (g *request) maxAge(now time.Time) int64 {
	const settled = 3600 // s
	relative := func(text string) bool { return strings.HasSuffix(strings.ToLower(text), "-ago") }
	from, to := g.Start/1000, g.End/1000
	switch seconds := now.Unix(); {
	case g.stats.Damaged > 0:
		return 0 // once its rows are repaired there is more to see
	case to > seconds:
		return 0 // its end is still to come
	case to < seconds-settled && !relative(g.StartText) && !relative(g.EndText):
		return 86400
	}
	// About a thousandth of the time shown, so that little is missing at its end.
	return (to - from) >> 10
}
