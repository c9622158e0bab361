package tools

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"downpour/encoding"
	"downpour/gateway/query"
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
func runQuery(ctx context.Context, c *call) error {
	body, err := c.query()
	if err != nil {
		return err
	}
	return c.at(ctx, existing, func(r *remote) error {
		out := bufio.NewWriter(c.Out)
		return errors.Join(r.query(ctx, body, func(g *result) error { return printResult(out, g) }), out.Flush())
	})
}

// query has each group of an answer taken as it comes.
func (r *remote) query(ctx context.Context, in *queryBody, take func(*result) error) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	resp, err := r.send(ctx, http.MethodPost, "/api/query?arrays=true", bytes.NewReader(text))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, err := io.ReadAll(resp.Body)
		return errors.Join(r.failed(resp.StatusCode, body), err)
	}

	groups := json.NewDecoder(bufio.NewReaderSize(resp.Body, 64<<10))
	_, err = groups.Token() // the bracket that opens the list
	for err == nil && groups.More() {
		var g result
		if err = groups.Decode(&g); err == nil {
			err = take(&g)
		}
	}
	if err == nil {
		_, err = groups.Token() // the one that closes it
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.url, err)
	}
	return nil
}

// result is one group of an answer.
type result struct {
	Metric string
	Tags   map[string]string
	DPS    json.RawMessage // [[time in ms, value],…]
}

// parse returns the query that a gateway would make of the body.
func (b *queryBody) parse(parser query.Parser) (*query.Query, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	return parser.JSON(text)
}

// readNumber parses a number of an answer. It is an integer if it has neither a point nor
// an exponent. One that JSON does not have is a string.
func readNumber(text string) (encoding.Value, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return encoding.IntValue(n), nil
	}
	f, err := strconv.ParseFloat(strings.Trim(text, `"`), 64)
	return encoding.FloatValue(f), err
}

// printResult prints the points of a group, one a line.
func printResult(out *bufio.Writer, r *result) error {
	var tags []string
	for _, k := range slices.Sorted(maps.Keys(r.Tags)) {
		tags = append(tags, k+"="+r.Tags[k])
	}
	text := "{" + strings.Join(tags, ", ") + "}"
	for point := range strings.SplitSeq(strings.Trim(string(r.DPS), "[]"), "],[") {
		at, value, ok := strings.Cut(point, ",")
		if !ok && point == "" {
			continue // the group has no points
		}
		v, err := readNumber(value)
		if err != nil {
			return fmt.Errorf("point [%s]: %w", point, err)
		}
		fmt.Fprintf(out, "%s %s %s %s\n", r.Metric, at, formatValue(v), text)
	}
	return nil
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
