//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"downpour/encoding/batch"
	"downpour/integration/differential"
	"downpour/integration/e2e"
)

// transportsAgree asks for JSON, Arrow and a WebSocket's snapshot, in
// milliseconds, and compares them point by point. The tags that an Arrow batch
// names as aggregated are left out: the reader has no access to them.
func transportsAgree(ctx context.Context, t *testing.T, g ground, r *rand.Rand) (differential.Query, string, bool) {
	q := named(r, g.d)
	q.AsGET, q.MS, q.Arrays, q.ShowQuery = false, true, true, true
	asJSON := ask(ctx, t, g.url, asQuestion(q))
	if asJSON.Status != 200 {
		return q, "", false
	}
	want := jsonLines(t, asJSON.Body)
	path := q.Path() + "&integers=true"
	a := must[e2e.Answer](t)(e2e.Post(ctx, g.url+path, q.Body(), "Accept", batch.StreamMediaType))
	if a.Status != 200 {
		return q, fmt.Sprintf("Arrow: status %d: %s", a.Status, a.Body), false
	}
	if d := cmp.Diff(want, arrowLines(t, a.Body)); d != "" {
		return q, "-JSON +Arrow\n" + d, false
	}
	if d := cmp.Diff(want, jsonLines(t, snapshot(t, g.url, q.Body()))); d != "" {
		return q, "-JSON +WebSocket\n" + d, false
	}
	return q, "", len(want) > 0
}

// jsonLines writes a line for each point of an answer in arrays form.
func jsonLines(t *testing.T, body []byte) (lines []string) {
	t.Helper()
	var results []struct {
		Metric     string
		Tags       map[string]string
		Query      struct{ Index int }
		QueryIndex int // of a WebSocket
		Dps        [][2]json.RawMessage
	}
	if err := json.Unmarshal(body, &results); err != nil {
		t.Fatalf("%v: %.500s", err, body)
	}
	for _, r := range results {
		for _, p := range r.Dps {
			lines = append(lines,
				row(r.Query.Index+r.QueryIndex, r.Metric, r.Tags, string(p[0]), exact(t, string(p[1]))))
		}
	}
	return lines
}

// exact writes integers as they are, and doubles in one form with the word float.
func exact(t *testing.T, text string) string {
	if strings.ContainsAny(text, ".eE\"n") {
		return "float " + number(t, text, false)
	}
	return text
}

// arrowLines writes the same lines for an Arrow stream.
func arrowLines(t *testing.T, stream []byte) (lines []string) {
	t.Helper()
	reader, err := ipc.NewReader(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Release()
	for reader.Next() {
		lines = append(lines, recordLines(t, reader.Record())...)
	}
	if err := reader.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

func recordLines(t *testing.T, r arrow.Record) (lines []string) {
	t.Helper()
	for i := range int(r.NumRows()) {
		var metric, at, value, integer string
		index := 0
		tags := map[string]string{}
		for c, f := range r.Schema().Fields() {
			column := r.Column(c)
			switch f.Name {
			case "metric":
				metric = column.ValueStr(i)
			case "timestamp":
				unit := f.Type.(*arrow.TimestampType).Unit
				at = strconv.FormatInt(column.(*array.Timestamp).Value(i).ToTime(unit).UnixMilli(), 10)
			case "value":
				value = arrowValue(column.(*array.Float64), i)
			case "value_int":
				if ints := column.(*array.Int64); ints.IsValid(i) {
					integer = strconv.FormatInt(ints.Value(i), 10)
				}
			case "query":
				index = int(column.(*array.Int32).Value(i))
			default:
				if column.IsValid(i) {
					tags[f.Name] = column.ValueStr(i)
				}
			}
		}
		if integer != "" {
			value = integer
		}
		lines = append(lines, row(index, metric, tags, at, value))
	}
	return lines
}

func arrowValue(column *array.Float64, i int) string {
	switch v := column.Value(i); {
	case column.IsNull(i):
		return "float null"
	case math.IsNaN(v):
		return "float nan"
	default:
		return "float " + strconv.FormatFloat(v, 'g', -1, 64)
	}
}

// snapshot subscribes to a query that ends and returns the results of its one
// snapshot.
func snapshot(t *testing.T, url, body string) json.RawMessage {
	t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{"downpour.v1"}}
	conn, _, err := dialer.Dial("ws"+strings.TrimPrefix(url, "http")+"/api/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.WriteMessage(websocket.TextMessage,
		[]byte(`{"type":"subscribe","id":"a","query":`+body+`}`)); err != nil {
		t.Fatal(err)
	}
	for {
		_, text, err := conn.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			Type    string
			Results json.RawMessage
		}
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		switch m.Type {
		case "snapshot":
			return m.Results
		case "heartbeat":
		default:
			t.Fatalf("message %.500s, want a snapshot or a heartbeat", text)
		}
	}
}
