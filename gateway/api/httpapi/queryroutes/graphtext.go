package queryroutes

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/javahash"
)

// javaTags returns the tags in the order in which OpenTSDB prints those of a picture: that
// of a hash map. Source: Tags.getTagsAsync.
func javaTags(r *engine.Result) []engine.Tag {
	tags := append([]engine.Tag{}, r.Tags...)
	javahash.Sort(tags, func(t engine.Tag) string { return t.K }, javahash.Slots)
	return tags
}

// sendASCII sends a line for each point of all rows that were read, NaN left out.
// Source: GraphHandler.respondAsciiQuery.
//
//	sys.cpu 1357603200 64 host=web01 dc=sjc
func (h *Handlers) sendASCII(w http.ResponseWriter, r *http.Request, g *graphRequest) error {
	if err := checkPoints(g.points(), h.AnswerLimits.JSON, "text", "DOWNPOUR_LIMIT_JSON"); err != nil {
		return err
	}
	setGraphHeaders(w.Header(), "text/plain", g.maxAge(h.Now()))

	work := newWorkTime(r.Context(), h.Timeout-time.Since(g.start))
	out := &answerWriter{w: w, q: g.Query, work: work}
	for _, groups := range g.groups {
		for i := range groups {
			if !out.lines(&groups[i].Result) {
				return abort(out.err)
			}
		}
	}
	return abort(out.flush())
}

// lines writes the points of a result, and reports whether to continue.
func (o *answerWriter) lines(r *engine.Result) bool {
	tags := ""
	for _, t := range javaTags(r) {
		tags += " " + t.K + "=" + t.V
	}

	for i := range r.Points.Len() {
		t, v := r.Points.At(i)
		if v.Float && math.IsNaN(v.Double()) {
			continue
		}

		o.text(r.Metric)
		o.text(" ")
		o.buf = strconv.AppendInt(o.buf, t/1000, 10)
		o.text(" ")
		o.buf = httpio.AppendValue(o.buf, v, false)
		o.text(tags)
		o.text("\n")
		if !o.flushIfFull() {
			return false
		}
	}
	return true
}

// sendGraphCounts answers how many points a picture has: plotted are those between start
// and end, points those that were read, etags for each sub-query the aggregated tags of its
// last group. Source: GraphHandler.RunGnuplot.
//
//	{"plotted":61,"points":236,"etags":[["host","dc"]],"timing":3}
func (h *Handlers) sendGraphCounts(w http.ResponseWriter, g *graphRequest) error {
	plotted := 0
	etags := make([][]string, len(g.groups)) // null without a group, except the first
	for i, groups := range g.groups {
		if i == 0 {
			etags[i] = []string{}
		}
		for k := range groups {
			plotted += plottedOf(&groups[k].Result, g.Start, g.End)
			etags[i] = append([]string{}, groups[k].AggregateTags...)
		}
	}

	body, err := json.Marshal(map[string]any{"plotted": plotted, "points": g.entry.Stats.Points, "etags": etags,
		"timing": time.Since(g.start).Milliseconds()})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(body)
	return abort(err)
}

// plottedOf counts the points of a result whose second lies between two times in ms.
func plottedOf(r *engine.Result, from, to int64) (n int) {
	for i := range r.Points.Len() {
		t, v := r.Points.At(i)
		if t >= from && t/1000 <= to/1000 && !(v.Float && math.IsNaN(v.Double())) {
			n++
		}
	}
	return n
}

// setGraphHeaders sets how long an answer may be kept. Its age is always 0, because it is made for
// each request.
func setGraphHeaders(to http.Header, contentType string, maxAge int64) {
	to.Set("Content-Type", contentType)
	to.Set("Age", "0")
	to.Set("Cache-Control", "max-age="+strconv.FormatInt(maxAge, 10))
}
