package hostile

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Expressions of variables a and b, from the usual, which come first, to what ran as a script
// in OpenTSDB.
var expressions = []string{"a + b", "100 * a / b", "a > b ? a : b", "a / 0", "a % 0", "(a + b) * 1e308 * 1e308",
	"-a", "e0 + a", "c", "a +", "", "a ? b", "0x", "1e999", "9223372036854775808",
	"new('java.lang.ProcessBuilder', 'id').start()", "''.getClass()", "while (true) {}", "é", "\x00", "a;b",
	"a && !b || a eq b"}

// usualExpressions is how many of them, and of those of gexp, are usual.
const usualExpressions = 7

// Expressions of gexp; each %s is a sub-query.
var gexpressions = []string{"scale(%s,2)", "absolute(%s)", "sum(%s,%s)", "movingAverage(%s,10)",
	"movingAverage(%s,'5min')", "highestMax(%s,1)", "timeShift(%s,'1week')", "divideSeries(%s,%s)",
	"movingAverage(%s,2147483647)", "movingAverage(%s,'99999999week')", "highestCurrent(%s,-5)",
	"shift(%s,'999999999999weeks')", "alias(%s,@host)", "scale(%s,NaN)", "scale(", "nothing(%s)", "%s",
	"scale(%s,2),scale(%s,3)", "sum(", ""}

// expression asks for expressions over metrics, in the language of /api/query/exp or of
// gexp. Half of the requests can be answered.
func (d *drawing) expression() Request {
	usual := d.one(2)
	if d.one(3) {
		return d.gexp(usual)
	}

	end := Era + pick(d, []int{60, 3600, 36_000})
	time := map[string]any{"start": strconv.Itoa(Era), "end": strconv.Itoa(end), "aggregator": "sum",
		"downsampler": map[string]any{
			"interval":   pick(d, usualIntervals),
			"aggregator": "avg",
			"fillPolicy": map[string]any{"policy": "nan"},
		}}
	group := map[string]any{"type": "wildcard", "tagk": "host", "filter": "*", "groupBy": !d.one(3)}
	if !usual {
		time["aggregator"] = pick(d, []string{"avg", "none", "nothing"})
		time["downsampler"] = map[string]any{"interval": pick(d, []string{"1ms", "0s", "1000y", "1m"}),
			"aggregator": pick(d, []string{"sum", "nothing"}),
			"fillPolicy": map[string]any{"policy": pick(d, []string{"zero", "none", "x"})}}
		if d.one(4) {
			group["type"] = "regexp"
			group["filter"] = pick(d, []string{"(a*)*b", "[", "web.*1", strings.Repeat("(", d.size(4096))})
		}
	}
	body := map[string]any{"time": time, "filters": []any{map[string]any{"id": "f", "tags": []any{group}}},
		"metrics": []any{
			map[string]any{"id": "a", "metric": d.metric().Name, "filter": "f"},
			map[string]any{"id": "b", "metric": d.metric().Name, "filter": "f"},
		}}
	var all, outputs []any
	for n := range 1 + d.size(100) {
		id := fmt.Sprintf("e%d", n)
		e := map[string]any{"id": id, "expr": d.expressionText(usual)}
		if d.one(3) {
			e["join"] = map[string]any{"operator": pick(d, []string{"union", "intersection"}), "useQueryTags": d.one(2)}
		}
		all, outputs = append(all, e), append(outputs, map[string]any{"id": id})
	}
	if !usual {
		outputs = append(outputs, map[string]any{"id": pick(d, []string{"a", "nothing"})})
	}
	body["expressions"], body["outputs"] = all, outputs

	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // maps of texts
	}
	m := message{
		method: "POST",
		path:   "/api/query/exp" + pick(d, []string{"", "", "?trace=true", "?explain=true", "?allowPartial=true"}),
		body:   text,
	}
	if !usual && d.one(3) {
		m.method, m.body = pick(d, []string{"POST", "GET", "PUT", "DELETE"}), text[:d.r.IntN(len(text))]
	}
	if d.one(4) {
		m.set("Accept", "application/vnd.apache.arrow.stream")
	}
	return m.request()
}

// expressionText is one expression.
func (d *drawing) expressionText(usual bool) string {
	switch {
	case usual:
		return pick(d, expressions[:usualExpressions])
	case d.one(20):
		return strings.Repeat("(", d.size(8192)) + "a"
	case d.one(20):
		return "a" + strings.Repeat("+a", d.size(4096))
	}
	return pick(d, expressions)
}

// gexp asks for functions over sub-queries.
func (d *drawing) gexp(usual bool) Request {
	functions := gexpressions
	if usual {
		functions = functions[:usualExpressions]
	}
	p := parameters{}
	p.add("start", strconv.Itoa(Era))
	p.add("end", strconv.Itoa(Era+pick(d, []int{60, 3600, 36_000})))
	for range 1 + max(0, d.r.IntN(6)-3) {
		text := pick(d, functions)
		// Up to two more functions stand inside; what is left of %s are sub-queries.
		for range d.r.IntN(3) {
			text = strings.Replace(text, "%s", pick(d, functions), 1)
		}
		if !usual && d.one(20) {
			text = strings.Repeat("scale(", d.size(8192)) + text
		}
		for strings.Contains(text, "%s") {
			text = strings.Replace(text, "%s",
				pick(d, []string{"sum:", "sum:5m-avg:", "none:1m-sum-zero:", "max:rate:"})+d.metric().Name+
					pick(d, []string{"", "{host=*}", "{host=web00001}"}), 1)
		}
		p.add("exp", text)
	}
	if !usual && d.one(6) {
		p.add("m", "sum:"+d.metric().Name)
	}
	m := message{method: "GET", path: p.on("/api/query/gexp")}
	return m.request()
}
