package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"

	"downpour/encoding/batch"
	"downpour/integration/differential"
)

// agreed are how many questions about live points gateways must agree on.
const agreed = 40

// checkAgreement compares the gateways' answers to drawn questions about the points that clients
// and the TSD have put, in every form of a query. Gateways have different settings: one may have a
// result cache or use pushdown servers where another does not. Each answers a question three times:
// a cache stores an answer only when the question comes a second time, and gives it from the third
// on.
func (w *World) checkAgreement() {
	data := w.livePoints()
	if len(data.Series) == 0 {
		return
	}
	r := w.rand("questions about live points")
	for range agreed {
		q, mayFail := drawQuestion(r, data)
		method, form := "POST", "application/json"
		if q.Body == "" {
			method = "GET"
		}
		if path, _, _ := strings.Cut(q.Path, "?"); path == "/api/query" && r.IntN(4) == 0 {
			form = batch.StreamMediaType
		}
		ask := func(gateway int) answer {
			a := w.clients.ask(gateway, method, q.Path, q.Body, "Accept", form)
			if a.ok() && form == batch.StreamMediaType {
				rows, err := arrowRows(a.body)
				if err != nil {
					w.clients.wrong(gateway, "%s as Arrow: %v", q.Path, err)
				}
				a.body = rows
				w.checked("rows of Arrow")
			}
			return a
		}
		first := ask(0)
		if !first.ok() && !mayFail {
			w.clients.wrong(0, "%s: %v, want an answer", q.Path, first)
		}
		for i := 1; i < 3*len(w.gateways); i++ {
			w.agree(q, first, i%len(w.gateways), ask(i%len(w.gateways)))
		}
		w.counted(func(n *Counts) { n.Queries += 3 * len(w.gateways) })
	}
}

// agree compares a gateway's answer with the first one to the same question. The text of an error may differ.
func (w *World) agree(q differential.Request, first answer, gateway int, a answer) {
	if first.ok() {
		w.checked("agreement")
	} else {
		w.checked("agreement on an error")
	}
	switch {
	case first.err != nil || a.err != nil || first.status != a.status || temporary(first.status):
		w.clients.wrong(gateway, "%s %s: %v, gateway 0: %v", q.Path, q.Body, a, first)
	case first.ok() && !bytes.Equal(first.body, a.body):
		w.clients.wrong(gateway, "%s %s (-gateway 0 +gateway %d):\n%.3000s",
			q.Path, q.Body, gateway, gocmp.Diff(string(first.body), string(a.body)))
	}
}

// livePoints are all points of the metrics that clients put, as the first gateway shows them.
func (w *World) livePoints() *differential.Data {
	data := &differential.Data{Era: w.began.Unix() / 3600 * 3600}
	for _, metric := range []string{"m0", "m1"} {
		out, err := w.clients.query(0, "none:"+metric)
		if err != nil {
			w.t.Errorf("seed %d: %v", w.seed, err)
			continue
		}
		for _, s := range out {
			of := differential.Series{Metric: s.Metric, Tags: s.Tags, TSUID: strings.Join(s.TSUIDs, "")}
			for p := range pointsOf([]series{s}) {
				of.Points = append(of.Points, differential.Point{MS: p.at * 1000})
			}
			slices.SortFunc(of.Points, func(a, b differential.Point) int { return cmp.Compare(a.MS, b.MS) })
			data.Series = append(data.Series, of)
		}
	}
	return data
}

// drawQuestion draws a request that reads. Of those drawn freely some are errors, as with an end before the start.
func drawQuestion(r *rand.Rand, data *differential.Data) (q differential.Request, mayFail bool) {
	s := data.Series[r.IntN(len(data.Series))]
	host := s.Tags["host"]
	switch r.IntN(10) {
	case 0:
		return differential.RandomExp(r, data).Request(), true
	case 1:
		series := fmt.Sprintf("%s{host=%s}", s.Metric, host)
		return differential.Request{
			Path: "/api/query/last?resolve=true&back_scan=24&timeseries=" + url.QueryEscape(series),
		}, false
	case 2:
		return differential.Request{Path: "/api/search/lookup?m=" + url.QueryEscape(s.Metric)}, false
	case 3:
		expression := fmt.Sprintf("diffSeries(sum:1m-avg:%[1]s{host=%[2]s},scale(max:1m-count:%[1]s{host=%[2]s},2))",
			s.Metric, host)
		path := fmt.Sprintf("/api/query/gexp?start=%d&end=%d&exp=%s",
			data.Era-3*3600, data.Era+3600, url.QueryEscape(expression))
		return differential.Request{Path: path}, false
	case 4:
		return differential.Request{Path: "/api/suggest?type=tagv&q=" + host[:1]}, false
	}
	return differential.Random(r, data).Request(), true
}
