package hostile

import (
	"bufio"
	"bytes"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"downpour/encoding"
)

// short is how many requests the short form of integration.TestHostile draws.
const short = 2000

var testWorld = NewWorld(encoding.DefaultSchema())

// A request is found again by seed and number, in whatever order they are drawn.
func TestDraw_again(t *testing.T) {
	again := NewWorld(encoding.DefaultSchema())
	for n := short - 1; n >= 0; n -= 17 {
		if one, other := Draw(5, n, testWorld), Draw(5, n, again); !reflect.DeepEqual(one, other) {
			t.Fatalf("request %d is drawn in two ways:\n%s\n%s", n, &one, &other)
		}
	}
	if one, other := Draw(5, 3, testWorld), Draw(6, 3, testWorld); reflect.DeepEqual(one, other) {
		t.Error("two seeds draw the same request, want two requests")
	}
}

// A short run has at least five requests of each kind, manner and transport, and puts no point
// twice.
func TestDraw_variety(t *testing.T) {
	seen := map[string]int{}
	points := map[Point]int{}
	for n := range short {
		q := Draw(1, n, testWorld)
		seen[q.Kind]++
		seen[string(q.Door)+" "+string(q.Manner)]++
		seen["exact"] += boolean(q.Exact && q.Judged())
		seen["arrow"] += boolean(q.Arrow)
		for _, m := range q.Messages {
			for kind, is := range liveExpressions {
				seen[kind] += boolean(strings.Contains(m, `"exp":{"expressions"`) && is(m))
			}
		}
		for _, p := range q.Points {
			p.Value = 0
			if points[p]++; points[p] > 1 {
				t.Fatalf("request %d puts %+v again", n, p)
			}
		}
		seen["points"] += len(q.Points)
		if q.Door == HTTP && q.Kind != "malformed query" && q.Kind != "metadata" {
			if _, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(q.Wire))); err != nil {
				t.Errorf("%s: %v", &q, err)
			}
		}
	}
	want := []string{
		"exact", "arrow", "points", "telnet whole", "telnet halfclosed", "telnet unread", "telnet leaves",
		"telnet stops", "websocket unread", "websocket whole", "websocket slow",
	}
	want = slices.AppendSeq(want, maps.Keys(liveExpressions))
	for _, k := range kinds {
		want = append(want, k.name)
	}
	for _, m := range []Manner{Whole, HalfClosed, Slow, Stops, Leaves, Unread} {
		want = append(want, "http "+string(m))
	}
	for _, name := range want {
		if seen[name] < 5 {
			t.Errorf("%s: %d of %d requests, want at least 5", name, seen[name], short)
		}
	}
	t.Log(seen)
}

// liveExpressions are properties that some of the drawn live expressions must have.
var liveExpressions = map[string]func(message string) bool{
	"a circle":          func(m string) bool { return strings.Contains(m, ` + e1"`) },
	"an id in capitals": func(m string) bool { return strings.Contains(m, `"id":"M`) },
	"many metrics":      func(m string) bool { return strings.Contains(m, `"id":"m19"`) },
	"many tables":       func(m string) bool { return strings.Contains(m, `"id":"e200"`) },
	"deep":              func(m string) bool { return strings.Contains(m, strings.Repeat("(", 4000)) },
	"too long":          func(m string) bool { return len(m) > 64<<10 },
	"an end":            func(m string) bool { return strings.Contains(m, `"end":`) },
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestKinds_shares(t *testing.T) {
	sum := 0
	for _, k := range kinds {
		sum += k.share
	}
	if sum != 100 {
		t.Errorf("the shares add up to %d, want 100", sum)
	}
}

// The rows come in order, none twice, and those that are decoded have points.
func TestWorld_rows(t *testing.T) {
	rows, last := map[string]bool{}, ""
	var decoder encoding.RowDecoder
	for c := range testWorld.Rows() {
		if rows[string(c.Row)] {
			t.Fatalf("row % X twice", c.Row)
		}
		if string(c.Row) < last {
			t.Fatalf("row % X follows % X", c.Row, last)
		}
		rows[string(c.Row)], last = true, string(c.Row)
		if len(rows)%100 != 0 {
			continue // only every hundredth row is decoded
		}
		key, err := testWorld.Schema.ParseRowKey(c.Row)
		if err != nil {
			t.Fatal(err)
		}
		decoder.Reset(key.BaseTime)
		var p encoding.Points
		if err := decoder.Add(c.Qualifier, c.Value, 0); err != nil {
			t.Fatal(err)
		}
		if err := decoder.Finish(&p); err != nil || p.Len() == 0 {
			t.Fatalf("row % X: %d points, %v", c.Row, p.Len(), err)
		}
	}
	want := 0
	for i := range metrics {
		want += metrics[i].Points * metrics[i].Series
	}
	t.Logf("%d rows, %d points", len(rows), want)
}
