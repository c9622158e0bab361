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

	"downpour/integration/differential"
)

// agreed are how many questions about live points gateways must agree on.
const agreed = 40

// checkAgreement asks drawn questions about the points that clients and the TSD have put, in every form of a query. Gateways differ in
// their settings: the one caches and the other does not, or reads by pushdown servers. Each is asked three times, because caches keep
// what is asked again.
func (w *World) checkAgreement() {
	data := w.livePoints()
	if len(data.Series) == 0 {
		return
	}
	r := w.rand("questions about live points")
	for range agreed {
		q := drawQuestion(r, data)
		method := "POST"
		if q.Body == "" {
			method = "GET"
		}
		first := w.clients.ask(0, method, q.Path, q.Body)
		for i := 1; i < 3*len(w.gateways); i++ {
			w.agree(q, first, i%len(w.gateways), w.clients.ask(i%len(w.gateways), method, q.Path, q.Body))
		}
		w.counted(func(n *Counts) { n.Queries += 3 * len(w.gateways) })
	}
}

// agree compares a gateway's answer with the first one to the same question. The text of an error may differ.
func (w *World) agree(q differential.Request, first answer, gateway int, a answer) {
	w.checked("agreement")
	switch {
	case first.err != nil || a.err != nil || first.status != a.status || temporary(first.status):
		w.clients.wrong(gateway, "%s %s: %v, gateway 0: %v", q.Path, q.Body, a, first)
	case first.ok() && !bytes.Equal(first.body, a.body):
		w.clients.wrong(gateway, "%s %s (-gateway 0 +gateway %d):\n%.3000s", q.Path, q.Body, gateway, gocmp.Diff(string(first.body), string(a.body)))
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

// drawQuestion draws a request that reads.
func drawQuestion(r *rand.Rand, data *differential.Data) differential.Request {
	s := data.Series[r.IntN(len(data.Series))]
	name := url.QueryEscape(fmt.Sprintf("%s{host=%s}", s.Metric, s.Tags["host"]))
	switch r.IntN(10) {
	case 0:
		return differential.RandomExp(r, data).Request()
	case 1:
		return differential.Request{Path: "/api/query/last?resolve=true&back_scan=24&timeseries=" + name}
	case 2:
		return differential.Request{Path: "/api/search/lookup?m=" + url.QueryEscape(s.Metric)}
	case 3:
		gexp := fmt.Sprintf("alias(diffSeries(sum:1m-avg:%s,max:1m-count:%s),'a')", s.Metric, s.Metric)
		return differential.Request{Path: fmt.Sprintf("/api/query/gexp?start=%d&end=%d&exp=%s", data.Era-3*3600, data.Era+3600, url.QueryEscape(gexp))}
	case 4:
		return differential.Request{Path: "/api/suggest?type=tagv&q=" + s.Tags["host"][:1]}
	}
	return differential.Random(r, data).Request()
}
