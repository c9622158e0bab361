package tools

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"downpour/encoding"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
)

// queryBody is the body of POST /api/query that the arguments of a command make.
type queryBody struct {
	Start        string     `json:"start"`
	End          string     `json:"end,omitempty"`
	MSResolution bool       `json:"msResolution"`
	Queries      []subQuery `json:"queries"`
}

type subQuery struct {
	Aggregator  string            `json:"aggregator"`
	Metric      string            `json:"metric"`
	Rate        bool              `json:"rate,omitempty"`
	RateOptions *rateOptions      `json:"rateOptions,omitempty"`
	Downsample  string            `json:"downsample,omitempty"`
	Tags        map[string]string `json:"tags,omitempty"`
}

type rateOptions struct {
	Counter    bool  `json:"counter"`
	CounterMax int64 `json:"counterMax,omitempty"`
	ResetValue int64 `json:"resetValue,omitempty"`
}

// runQuery prints an answer as tsdb query does, a point a line:
//
//	sys.cpu.user 1356998400000 42 {host=web01}
//	sys.cpu.user 1356998460000 0.500000 {host=web01}
//
// Times are milliseconds, floats have six decimals. Unlike tsdb it does not print points
// outside START and END, and it sorts tags.
// Source: CliQuery.doQuery.
func runQuery(ctx context.Context, c *call) (err error) {
	body, err := c.queryArguments()
	if err != nil {
		return err
	}
	conn, err := c.connect(ctx, existing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.close()) }()

	results, err := c.answer(ctx, conn, body)
	if err != nil {
		return err
	}

	out := bufio.NewWriter(c.Out)
	for _, r := range results {
		printResult(out, r)
	}
	return out.Flush()
}

// result is one group of an answer, of this process or of a gateway.
type result struct {
	Metric string
	Tags   map[string]string
	DPS    [][2]json.Number // time in ms, value
	points encoding.Points
}

// parse returns the query that a gateway would make of the body.
func (c *call) parse(body *queryBody) (*query.Query, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return c.parser().JSON(text)
}

// answer answers the query from the store, or asks the gateway.
func (c *call) answer(ctx context.Context, conn *connection, body *queryBody) ([]result, error) {
	if conn.store == nil {
		return conn.remote.query(ctx, body)
	}

	q, err := c.parse(body)
	if err != nil {
		return nil, err
	}
	groups, _, err := c.engine(conn).Run(ctx, q, engine.Options{})
	if err != nil {
		return nil, err
	}

	results := make([]result, len(groups))
	for i, g := range groups {
		results[i] = result{Metric: g.Metric, Tags: map[string]string{}, points: g.Points}
		for _, t := range g.Tags {
			results[i].Tags[t.K] = t.V
		}
	}
	return results, nil
}

// query asks the gateway.
func (r *remote) query(ctx context.Context, body *queryBody) ([]result, error) {
	var results []result
	if err := r.call(ctx, http.MethodPost, "/api/query?arrays=true", body, &results); err != nil {
		return nil, err
	}
	for i := range results {
		for _, p := range results[i].DPS {
			t, err := p[0].Int64()
			if err != nil {
				return nil, fmt.Errorf("%s: time of a point: %w", r.url, err)
			}
			v, err := readNumber(p[1].String())
			if err != nil {
				return nil, fmt.Errorf("%s: value of a point: %w", r.url, err)
			}
			results[i].points.Append(t, v)
		}
	}
	return results, nil
}

// readNumber parses a number of an answer. It is an integer if it has neither a point nor
// an exponent.
func readNumber(text string) (encoding.Value, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return encoding.IntValue(n), nil
	}
	f, err := strconv.ParseFloat(text, 64)
	return encoding.FloatValue(f), err
}

// printResult prints the points of a group, one a line.
func printResult(out *bufio.Writer, r result) {
	var tags []string
	for _, k := range slices.Sorted(maps.Keys(r.Tags)) {
		tags = append(tags, k+"="+r.Tags[k])
	}
	text := "{" + strings.Join(tags, ", ") + "}"
	for i := range r.points.Len() {
		t, v := r.points.At(i)
		fmt.Fprintf(out, "%s %d %s %s\n", r.Metric, t, formatValue(v), text)
	}
}

// formatValue returns a number as Java's %d and %f write it.
func formatValue(v encoding.Value) string {
	if !v.Float {
		return strconv.FormatInt(v.Int(), 10)
	}
	switch d := v.Double(); {
	case math.IsInf(d, 1):
		return "Infinity"
	case math.IsInf(d, -1):
		return "-Infinity"
	default:
		return strconv.FormatFloat(d, 'f', 6, 64)
	}
}
