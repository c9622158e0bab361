package merge

import (
	"encoding/json"
	"sort"
	"strconv"
	"strings"
	"testing"

	"downpour/encoding"
	"downpour/integration/conformance"
)

type recording struct {
	Assign [][2]string
	Points []struct {
		Metric    string
		Timestamp int64
		Value     json.Number
		Tags      map[string]string
	}
	Queries []struct {
		Path     string
		Request  request
		Status   int
		Response json.RawMessage
	}
}

type request struct {
	Start, End   int64
	MsResolution bool
	Timezone     string
	UseCalendar  bool
	Queries      []subQuery
}

type subQuery struct {
	Metric, Aggregator, Downsample string
	Rate                           bool
	RateOptions                    struct {
		Counter, DropResets    bool
		CounterMax, ResetValue json.Number
	}
	Filters []struct {
		Type, Tagk, Filter string
		GroupBy            bool
	}
	ExplicitTags bool
}

// world is the recorded data with the UIDs of its names.
type world struct {
	schema encoding.Schema
	uids   map[string]map[string]encoding.UID // by kind, by name
	names  map[string]map[string]string       // by kind, by UID
	series map[string][]series                // by metric
	tags   map[string]map[string]string       // by span
}

func load(t *testing.T, name string) *recording {
	t.Helper()
	r := new(recording)
	if err := conformance.Decode(name, r); err != nil {
		t.Fatal(err)
	}
	return r
}

func newWorld(t *testing.T, r *recording, schema encoding.Schema) *world {
	w := &world{schema: schema, uids: map[string]map[string]encoding.UID{}, names: map[string]map[string]string{},
		series: map[string][]series{}, tags: map[string]map[string]string{}}
	for _, kind := range []string{"metric", "tagk", "tagv"} {
		w.uids[kind], w.names[kind] = map[string]encoding.UID{}, map[string]string{}
	}
	for _, a := range r.Assign {
		kind := a[0]
		uid, err := encoding.AppendUID(nil, uint64(len(w.uids[kind])+1), 3)
		if err != nil {
			t.Fatal(err)
		}
		w.uids[kind][a[1]], w.names[kind][string(uid)] = uid, a[1]
	}
	type point struct {
		ms int64
		v  encoding.Value
	}
	points := map[string][]point{}
	owner := map[string]series{}
	for _, p := range r.Points {
		var pairs []encoding.TagPair
		for k, v := range p.Tags {
			pairs = append(pairs, encoding.TagPair{K: w.uids["tagk"][k], V: w.uids["tagv"][v]})
		}
		s := series{metric: w.uids["metric"][p.Metric], tags: schema.AppendTags(nil, pairs)}
		span := string(s.span(schema))
		owner[span], w.tags[span] = s, p.Tags
		ms := p.Timestamp
		if ms < 1<<32 {
			ms *= 1000
		}
		points[span] = append(points[span], point{ms, parseValue(t, p.Value.String())})
	}
	for span, ps := range points {
		sort.SliceStable(ps, func(i, j int) bool { return ps[i].ms < ps[j].ms })
		s := owner[span]
		for i, p := range ps {
			if i+1 == len(ps) || ps[i+1].ms != p.ms {
				s.points.Append(p.ms, p.v)
			}
		}
		metric := w.names["metric"][string(s.metric)]
		w.series[metric] = append(w.series[metric], s)
	}
	return w
}

// parseValue returns an integer or a float, as the number is written.
func parseValue(t *testing.T, text string) encoding.Value {
	if !strings.ContainsAny(text, ".eE") {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return encoding.IntValue(n)
	}
	d, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return encoding.FloatValue(d)
}
