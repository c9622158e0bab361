package merge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/encoding/seedtest"
	"downpour/pushdown/operator/aggregate"
)

// The recorded queries of a real OpenTSDB are answered from series in memory. They are compiled
// without the gateway's code: filters are applied to the names of each series.

// result is one group of an answer in a form that can be compared.
type result struct {
	Metric        string
	Tags          map[string]string
	AggregateTags []string
	Dps           map[string]string // time to typed value
	Order         []string          // times of the arrays form
}

// typed returns a value as text that differs for different types and bits.
func typed(v encoding.Value) string {
	if !v.Float {
		return fmt.Sprint(v.Int())
	}
	if d := v.Double(); d == d {
		return fmt.Sprintf("%x", math.Float64bits(d)) + "=" + strconv.FormatFloat(d, 'g', -1, 64)
	}
	return "NaN"
}

func (w *world) render(q *request, path string, p *scanplan.Plan, groups []Group) (out []result) {
	for _, g := range groups {
		r := result{Tags: map[string]string{}, Dps: map[string]string{}}
		if len(g.Spans) > 0 {
			r.Metric = q.Queries[0].Metric
		}
		for _, pair := range g.Tags {
			r.Tags[w.names["tagk"][string(pair.K)]] = w.names["tagv"][string(pair.V)]
		}
		for _, k := range g.Aggregated {
			r.AggregateTags = append(r.AggregateTags, w.names["tagk"][string(k)])
		}
		sort.Strings(r.AggregateTags)
		for i := range g.Points.Len() {
			ms, v := g.Points.At(i)
			if !q.MsResolution {
				ms /= 1000
			}
			value := typed(v)
			if value == "NaN" && p.Downsample != nil && p.Downsample.Fill == scanplan.FillNull {
				value = "null"
			}
			r.add(fmt.Sprint(ms), value, strings.Contains(path, "arrays"))
		}
		out = append(out, r)
	}
	return out
}

func (r *result) add(time, value string, arrays bool) {
	r.Dps[time] = value
	if arrays {
		r.Order = append(r.Order, time+" "+value)
	}
}

// recorded reads an answer into the same form.
func recorded(t *testing.T, raw json.RawMessage) (out []result) {
	var groups []struct {
		Metric        string
		Tags          map[string]string
		AggregateTags []string
		Dps           json.RawMessage
	}
	if err := json.Unmarshal(raw, &groups); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		r := result{Metric: g.Metric, Tags: g.Tags, Dps: map[string]string{}}
		r.AggregateTags = append(r.AggregateTags, g.AggregateTags...)
		sort.Strings(r.AggregateTags)
		dec := json.NewDecoder(bytes.NewReader(g.Dps))
		dec.UseNumber()
		if g.Dps[0] == '[' {
			var pairs [][2]any
			if err := dec.Decode(&pairs); err != nil {
				t.Fatal(err)
			}
			for _, p := range pairs {
				r.add(fmt.Sprint(p[0]), recordedValue(t, p[1]), true)
			}
		} else {
			var pairs map[string]any
			if err := dec.Decode(&pairs); err != nil {
				t.Fatal(err)
			}
			for k, v := range pairs {
				r.add(k, recordedValue(t, v), false)
			}
		}
		out = append(out, r)
	}
	return out
}

func recordedValue(t *testing.T, v any) string {
	switch v := v.(type) {
	case json.Number:
		return typed(parseValue(t, v.String()))
	case string:
		return v
	}
	return "null"
}

// differ describes the first difference between two answers, "" for none.
func differ(got, want []result) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d groups, want %d", len(got), len(want))
	}
	for i := range got {
		g, w := &got[i], &want[i]
		if g.Metric != w.Metric || fmt.Sprint(g.Tags) != fmt.Sprint(w.Tags) ||
			fmt.Sprint(g.AggregateTags) != fmt.Sprint(w.AggregateTags) {
			return fmt.Sprintf("group %d: %s %v %v, want %s %v %v", i, g.Metric, g.Tags, g.AggregateTags, w.Metric,
				w.Tags, w.AggregateTags)
		}
		for k, v := range w.Dps {
			if g.Dps[k] != v {
				return fmt.Sprintf("group %d at %s: %s, want %s (%d points, want %d)", i, k, g.Dps[k], v, len(g.Dps),
					len(w.Dps))
			}
		}
		if len(g.Dps) != len(w.Dps) || !slices.Equal(g.Order, w.Order) {
			return fmt.Sprintf("group %d: %d points, want %d", i, len(g.Dps), len(w.Dps))
		}
	}
	return ""
}

// TestConformance compares the answers to all recorded queries with those of a real OpenTSDB.
// Queries that OpenTSDB refused when it parsed them are only counted.
//
//fault:zero-filled-with-nan ; fills => ; fills && v != 0
//fault:fill-dropped b.Fills() => false
//fault:parts-not-sorted !sorted => !sorted && false
func TestConformance(t *testing.T) {
	rng := seedtest.Rand(t)
	for _, name := range []string{"seed1", "seed2", "seed3_salted", "edges"} {
		t.Run(name, func(t *testing.T) {
			r := load(t, name)
			schema := encoding.DefaultSchema()
			if strings.HasSuffix(name, "salted") {
				schema.SaltWidth = 1
			}
			w := newWorld(t, r, schema)
			equal, refused := 0, 0
			for i := range r.Queries {
				q := &r.Queries[i]
				difference := w.replay(t, q.Path, &q.Request, q.Status, q.Response, rng.IntN)
				switch difference {
				case "":
					equal++
				case errBad.Error():
					refused++
				default:
					sub, _ := json.Marshal(q.Request)
					t.Errorf("query %d: %s\n%s", i, difference, sub)
				}
			}
			t.Logf("%d of %d answers equal, %d refused by the parser in both", equal, len(r.Queries), refused)
		})
	}
}

// replay answers one request and describes how the answer differs from the recorded one, "" for
// not at all.
func (w *world) replay(t *testing.T, path string, q *request, status int, response json.RawMessage,
	pick choose) string {
	p, chosen, err := w.compile(q)
	var got []Group
	if err == nil {
		got, err = answer(p, chosen, pick)
	}
	var infinite *aggregate.InfinityError
	switch {
	case status == 200 && err != nil:
		return err.Error() + ", want an answer"
	case status == 200:
		return differ(w.render(q, path, p, got), recorded(t, response))
	case errors.As(err, &infinite) || err != nil && strings.Contains(string(response), err.Error()):
		var e struct{ Error struct{ Message string } }
		if json.Unmarshal(response, &e) != nil || !strings.HasPrefix(err.Error(), e.Error.Message) {
			return fmt.Sprintf("error %q, want %s", err, response)
		}
		return ""
	case errors.Is(err, errBad):
		return errBad.Error()
	}
	return fmt.Sprintf("error %v, want %s", err, response)
}
