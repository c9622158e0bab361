package query

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recorded is a text and what the parser classes of OpenTSDB 2.4.1 made of it.
// testdata/parser.jsonl.gz has some 3,000. OpenTSDB refused a good third of them.
type recorded struct {
	Case struct {
		Kind, Text, Zone, Type string
		Values                 []string
	}
	Want map[string]any
}

func readRecorded(t *testing.T) (all []recorded) {
	t.Helper()
	f, err := os.Open("testdata/parser.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(bufio.NewReader(z)); ; {
		var r recorded
		if err := dec.Decode(&r); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
}

// The parser makes of every recorded text what OpenTSDB's made of it.
func TestRecorded(t *testing.T) {
	all := readRecorded(t)
	if len(all) < 3000 {
		t.Fatalf("%d recorded cases, want at least 3000", len(all))
	}
	for _, r := range all {
		got := answer(t, r)
		permitted(r.Want)
		if diff := cmp.Diff(r.Want, got); diff != "" {
			t.Errorf("%s %s %q in zone %q: (-want +got)\n%s", r.Case.Kind, r.Case.Type, r.Case.Text, r.Case.Zone, diff)
		}
	}
}

// permitted removes from a recorded result what Downpour does not keep: an empty text is null, and
// only calendar buckets have a time zone.
func permitted(want map[string]any) {
	subs, _ := want["subs"].([]any)
	for _, s := range subs {
		sub := s.(map[string]any)
		delete(sub, "filterTagKs") // unresolved
		for _, k := range []string{"downsample", "metric"} {
			if sub[k] == "" {
				sub[k] = nil
			}
		}
		if d, ok := sub["ds"].(map[string]any); ok {
			delete(d, "text")
			if d["calendar"] == false || d["interval"] == 0.0 {
				d["calendar"], d["zone"] = false, ""
			}
		}
	}
}

func answer(t *testing.T, r recorded) map[string]any {
	t.Helper()
	switch c := r.Case; c.Kind {
	case "time":
		ms, err := clock{now: time.UnixMilli(1e12)}.parseTime(c.Text, c.Zone)
		return number(ms, err)
	case "duration":
		return number(ParseDuration(c.Text))
	case "filter":
		f, err := NewFilter(c.Type, "k", c.Text, false)
		if err != nil {
			return map[string]any{"error": r.Want["error"]} // the text may be another one
		}
		match := []any{}
		for _, v := range c.Values {
			match = append(match, f.Match(v))
		}
		return map[string]any{"match": match}
	case "m":
		q, err := ParseURI(map[string][]string{"start": {"1356998400"}, "end": {"1357002000"}, "m": {c.Text}},
			time.UnixMilli(1e12))
		out := parsed(t, q, err)
		if e := new(Error); errors.As(err, &e) {
			out["status"] = float64(e.Status)
		}
		return out
	case "json":
		q, err := Parser{Now: time.UnixMilli(9e12)}.JSON([]byte(c.Text)) // after every start
		return parsed(t, q, err)
	}
	t.Fatalf("unknown kind %q", r.Case.Kind)
	return nil
}

func number(ms int64, err error) map[string]any {
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"ms": float64(ms)}
}

func parsed(t *testing.T, q *Query, err error) map[string]any {
	t.Helper()
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	out := map[string]any{"start": float64(q.Start)}
	if !q.NoEnd {
		out["end"] = float64(q.End)
	}
	var subs []any
	for i := range q.Queries {
		text, err := json.Marshal(q.Echo(i))
		if err != nil {
			t.Fatal(err)
		}
		var sub map[string]any
		if err := json.NewDecoder(strings.NewReader(string(text))).Decode(&sub); err != nil {
			t.Fatal(err)
		}
		delete(sub, "filterTagKs")
		if d := q.Queries[i].Downsample; d != nil {
			sub["ds"] = map[string]any{"interval": float64(d.Interval), "fill": string(d.Fill), "calendar": d.Calendar,
				"zone": d.Zone}
		}
		subs = append(subs, sub)
	}
	out["subs"] = subs
	return out
}
