package tools

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

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

func queryFlags(f *flag.FlagSet, o *options) {
	f.StringVar(&o.format, "format", "lines", strings.Join(formats, ", ")+
		": lines as tsdb's, a table for people, the gateway's JSON or Arrow stream, or a file for programs")
}

// runQuery prints an answer. As lines it does so as tsdb query does, a point a line:
//
//	sys.cpu.user 1356998400000 42 {host=web01}
//	sys.cpu.user 1356998460000 0.500000 {host=web01}
//
// Times are milliseconds, floats have six decimals. Unlike tsdb it does not print points
// outside START and END, and it sorts tags.
// Source: CliQuery.doQuery.
func runQuery(ctx context.Context, c *call) error {
	q, err := c.request()
	if err != nil {
		return err
	}
	form, ok := forms[c.format]
	if !ok {
		return c.usage("-format: got %q, want one of %s", c.format, strings.Join(formats, ", "))
	}
	if form.binary {
		if err := c.refuseTerminal(); err != nil {
			return err
		}
	}
	return c.at(ctx, existing, func(r *remote) error {
		out := bufio.NewWriter(c.Out)
		return errors.Join(r.query(ctx, q, form, out, c.tell), out.Flush())
	})
}

// request is one to /api/query: a GET by its parameters, or a POST with a body.
type request struct {
	parameters url.Values
	body       *queryBody // nil for a GET
}

// query writes an answer in a form, as it comes, and has warn say what the gateway warns of.
func (r *remote) query(ctx context.Context, q *request, in form, out *bufio.Writer, warn func(string)) error {
	method, parameters := http.MethodGet, maps.Clone(in.parameters)
	maps.Copy(parameters, q.parameters)
	var sent io.Reader
	if q.body != nil {
		text, err := json.Marshal(q.body)
		if err != nil {
			return err
		}
		method, sent = http.MethodPost, bytes.NewReader(text)
	}
	resp, err := r.send(ctx, method, "/api/query?"+parameters.Encode(), sent, "Accept", in.accept)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, err := io.ReadAll(resp.Body)
		return errors.Join(r.failed(resp.StatusCode, body), err)
	}

	for _, text := range resp.Header.Values("Warning") { // 299 - "words"
		_, quoted, _ := strings.Cut(text, " - ")
		if words, err := strconv.Unquote(quoted); err == nil {
			warn("warning: " + visible(words))
		}
	}
	if err := in.write(out, resp.Body); err != nil {
		return fmt.Errorf("%s: %w", r.url, err)
	}
	return nil
}

// parse returns the query that a gateway would make of the body.
func (b *queryBody) parse(parser query.Parser) (*query.Query, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	return parser.JSON(text)
}
