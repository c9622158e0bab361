package graphroutes

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/queryroutes"
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

// flushBytes is how much text is collected before it is written.
const flushBytes = 64 << 10

// sendASCII sends a line for each point of all rows that were read, NaN left out.
// Source: GraphHandler.respondAsciiQuery.
//
//	sys.cpu 1357603200 64 host=web01 dc=sjc
func (g *request) sendASCII(w http.ResponseWriter, a *queryroutes.Reading) error {
	if err := queryroutes.CheckPoints(g.points(), a.AnswerLimits.JSON, "text", "DOWNPOUR_LIMIT_JSON"); err != nil {
		return err
	}
	setHeaders(w.Header(), "text/plain", g.maxAge(a.Now()))

	out := &text{to: w, work: a.WorkTime()}
	for _, groups := range g.groups {
		for i := range groups {
			if err := out.lines(&groups[i].Result); err != nil {
				return queryroutes.Abort(err)
			}
		}
	}
	return queryroutes.Abort(out.flush())
}

// text is an answer of lines whose end is not written yet.
type text struct {
	to   io.Writer
	work *queryroutes.WorkTime
	rest []byte
}

// lines writes the points of a result.
func (t *text) lines(r *engine.Result) error {
	tags := ""
	for _, tag := range javaTags(r) {
		tags += " " + tag.K + "=" + tag.V
	}
	for i := range r.Points.Len() {
		at, v := r.Points.At(i)
		if v.Float && math.IsNaN(v.Double()) {
			continue
		}
		t.rest = append(append(t.rest, r.Metric...), ' ')
		t.rest = append(strconv.AppendInt(t.rest, at/1000, 10), ' ')
		t.rest = httpio.AppendValue(t.rest, v, false)
		t.rest = append(append(t.rest, tags...), '\n')
		if len(t.rest) < flushBytes {
			continue
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	return nil
}

// flush writes what is collected.
func (t *text) flush() error {
	err := t.work.Write(t.to, t.rest)
	t.rest = t.rest[:0]
	return err
}

// sendCounts answers how many points a picture has: plotted are those between start
// and end, points those that were read, etags for each sub-query the aggregated tags of its
// last group. Source: GraphHandler.RunGnuplot.
//
//	{"plotted":61,"points":236,"etags":[["host","dc"]],"timing":3}
func (g *request) sendCounts(w http.ResponseWriter) error {
	plotted := 0
	etags := make([][]string, len(g.groups)) // null without a group, except for the first
	for i, groups := range g.groups {
		if i == 0 {
			etags[i] = []string{}
		}
		for k := range groups {
			plotted += plottedOf(&groups[k].Result, g.Start, g.End)
			etags[i] = append([]string{}, groups[k].AggregateTags...)
		}
	}

	body, err := json.Marshal(map[string]any{"plotted": plotted, "points": g.stats.Points, "etags": etags,
		"timing": time.Since(g.start).Milliseconds()})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(body)
	return queryroutes.Abort(err)
}

// plottedOf counts the points of a result whose second is between two times in ms.
func plottedOf(r *engine.Result, from, to int64) (n int) {
	for i := range r.Points.Len() {
		t, v := r.Points.At(i)
		if t >= from && t/1000 <= to/1000 && !(v.Float && math.IsNaN(v.Double())) {
			n++
		}
	}
	return n
}

// setHeaders says how long an answer may be kept. Its age is always 0, for it is made
// again each time.
func setHeaders(to http.Header, contentType string, maxAge int64) {
	to.Set("Content-Type", contentType)
	to.Set("Age", "0")
	to.Set("Cache-Control", "max-age="+strconv.FormatInt(maxAge, 10))
}
