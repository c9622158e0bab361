package tools

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"downpour/encoding/scanplan"
	"downpour/gateway/query"
	"downpour/pushdown/operator/aggregate"
)

// queryArguments parses START [END] and one or more sub-queries.
// Source: CliQuery.parseCommandLineQuery.
func queryArguments(words []string, parser query.Parser) (*queryBody, error) {
	if len(words) < 3 {
		return nil, errors.New("want at least START, AGG and METRIC")
	}

	body := &queryBody{Start: words[0], MSResolution: true}
	words = words[1:]
	// END may be left out: then the next word is AGG.
	if _, ok := aggregate.Lookup(scanplan.Aggregator(words[0])); !ok && isTime(words[0], parser) {
		body.End, words = words[0], words[1:]
	}

	for len(words) > 0 {
		// tsdb's options of graphs.
		if strings.HasPrefix(words[0], "+") {
			return nil, fmt.Errorf("%q: graphs are not drawn", words[0])
		}
		r := &argumentReader{words: words}
		sub, err := r.subQuery()
		if err != nil {
			return nil, err
		}
		body.Queries = append(body.Queries, sub)
		words = r.words
	}
	if len(body.Queries) == 0 {
		return nil, errors.New("AGG and METRIC are missing")
	}
	return body, nil
}

// expressionArguments parses [START [END]] and one or more expressions, such as m=sum:1m-avg:sys.cpu.user{host=*}, as
// the address of a query has them, with or without m=. It returns nil if the words have no expression in this place. A
// gateway reads expressions itself, and words its errors.
func expressionArguments(words []string, parser query.Parser) (url.Values, error) {
	_, aggregator := aggregate.Lookup(scanplan.Aggregator(word(words, 1)))
	times := 0
	switch {
	case isExpression(word(words, 0)):
	case isExpression(word(words, 1)):
		times = 1
	case isExpression(word(words, 2)) && !aggregator && isTime(words[1], parser):
		times = 2
	default:
		return nil, nil
	}

	values := url.Values{"start": {"1h-ago"}, "ms": {"true"}}
	for i, name := range []string{"start", "end"}[:times] {
		values.Set(name, words[i])
	}
	for _, w := range words[times:] {
		if !isExpression(w) {
			return nil, fmt.Errorf("%q: want nothing but expressions behind an expression", w)
		}
		values.Add("m", strings.TrimPrefix(w, "m="))
	}
	return values, nil
}

// word is word i, empty if there are fewer.
func word(words []string, i int) string {
	if i >= len(words) {
		return ""
	}
	return words[i]
}

// isExpression reports whether a word is m=…, or an aggregator and a colon with more behind it. A time with a colon is
// none.
func isExpression(w string) bool {
	first, _, colon := strings.Cut(w, ":")
	_, aggregator := aggregate.Lookup(scanplan.Aggregator(first))
	return strings.HasPrefix(w, "m=") || colon && aggregator
}

// request returns what a gateway gets for a command's arguments.
func (c *call) request() (*request, error) {
	values, err := expressionArguments(c.args, c.parser())
	if err != nil {
		return nil, c.usage("%v", err)
	}
	if values != nil {
		return &request{parameters: values}, nil
	}
	body, err := c.query()
	return &request{body: body}, err
}

// query returns the query of a command's arguments.
func (c *call) query() (*queryBody, error) {
	body, err := queryArguments(c.args, c.parser())
	if err != nil {
		return nil, c.usage("%v", err)
	}
	return body, nil
}

// argumentReader reads words one by one.
type argumentReader struct{ words []string }

// next returns the next word. what names it in the error if there is none.
func (r *argumentReader) next(what string) (string, error) {
	if len(r.words) == 0 {
		return "", fmt.Errorf("%s is missing", what)
	}
	w := r.words[0]
	r.words = r.words[1:]
	return w, nil
}

// accept takes the next word if it is the wanted one.
func (r *argumentReader) accept(word string) bool {
	if len(r.words) == 0 || r.words[0] != word {
		return false
	}
	r.words = r.words[1:]
	return true
}

// subQuery parses AGG [rate [counter…]] [downsample N AGG] METRIC tag=value….
func (r *argumentReader) subQuery() (s subQuery, err error) {
	if s.Aggregator, err = r.next("AGG"); err != nil {
		return s, err
	}
	if _, ok := aggregate.Lookup(scanplan.Aggregator(s.Aggregator)); !ok {
		return s, fmt.Errorf("AGG: got %q, want one of %s", s.Aggregator, strings.Join(aggregate.Names(), ", "))
	}
	if r.accept("rate") {
		s.Rate = true
		if s.RateOptions, err = r.rateOptions(); err != nil {
			return s, err
		}
	}
	if r.accept("downsample") {
		if s.Downsample, err = r.downsample(); err != nil {
			return s, err
		}
	}
	if s.Metric, err = r.next("METRIC"); err != nil {
		return s, err
	}
	s.Tags, err = r.tags()
	return s, err
}

// rateOptions parses counter[,max[,reset]]. It returns nil if that is not there.
func (r *argumentReader) rateOptions() (*rateOptions, error) {
	if len(r.words) == 0 || !strings.HasPrefix(r.words[0], "counter") {
		return nil, nil
	}
	w, _ := r.next("counter")
	parts := strings.Split(w, ",")
	o := &rateOptions{Counter: true}
	for i, to := range []*int64{&o.CounterMax, &o.ResetValue} {
		if len(parts) <= i+1 || parts[i+1] == "" { // counter,,5 has no maximum
			continue
		}
		n, err := strconv.ParseInt(parts[i+1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("rate: got %q, want counter[,max[,reset]]", w)
		}
		*to = n
	}
	return o, nil
}

// downsample parses N AGG. N without a unit is milliseconds, as in OpenTSDB 2; with a
// unit it is a duration such as 5m.
func (r *argumentReader) downsample() (string, error) {
	n, err := r.next("interval of downsample")
	if err != nil {
		return "", err
	}
	if strings.Trim(n, "0123456789") == "" {
		n += "ms"
	}
	f, err := r.next("aggregator of downsample")
	return n + "-" + f, err
}

// tags parses the words with an equals sign that come next.
func (r *argumentReader) tags() (map[string]string, error) {
	tags := map[string]string{}
	for len(r.words) > 0 && strings.Contains(r.words[0], "=") {
		w, _ := r.next("tag")
		k, v, _ := strings.Cut(w, "=")
		if k == "" || v == "" || strings.Contains(v, "=") {
			return nil, fmt.Errorf("invalid tag: %s", w)
		}
		if old, ok := tags[k]; ok && old != v {
			return nil, fmt.Errorf("duplicate tag: %s, tags=%s", w, k+"="+old)
		}
		tags[k] = v
	}
	return tags, nil
}
