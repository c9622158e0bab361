package resultcache

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/encoding/seedtest"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
)

// keyed returns the key of a part of hours 1 and 2 of a plan over hours 0 to 3, after a change.
func keyed(mode scanplan.Mode, change func(*scanplan.Part)) ID {
	s := encoding.DefaultSchema()
	p := &scanplan.Part{Plan: operatortest.Plan(s, operatortest.UID(1), base, base+4*3600), Mode: mode}
	p.Range = operatortest.Plan(s, operatortest.UID(1), base+3600, base+3*3600).Ranges[0]
	p.Plan.Downsample = &scanplan.Downsample{Interval: 300_000, Function: "avg"}
	change(p)
	return PartKey(p)
}

//fault:answer-to-other-tags => p.Plan.Ranges, p.Plan.Tags = nil, nil
func TestKey(t *testing.T) {
	for _, mode := range []scanplan.Mode{scanplan.PerSeries, scanplan.PartialAggregation} {
		usual := keyed(mode, func(*scanplan.Part) {})
		f := func(name string, same bool, change func(*scanplan.Part)) {
			t.Helper()
			if got := keyed(mode, change) == usual; got != same {
				t.Errorf("%s, %s: same key %v, want %v", mode, name, got, same)
			}
		}
		perSeries := mode == scanplan.PerSeries
		f("nothing", true, func(*scanplan.Part) {})
		f("query start", true, func(p *scanplan.Part) { p.Plan.Start += 300_000 })
		f("query end", true, func(p *scanplan.Part) { p.Plan.End -= 300_000 })
		f("earlier hours", true, func(p *scanplan.Part) {
			p.Plan.From -= 3600
			p.Plan.Ranges = operatortest.Plan(p.Plan.Schema, p.Plan.Metric, base-3600, base+4*3600).Ranges
		})
		f("no earlier hours", perSeries, func(p *scanplan.Part) { p.Plan.From = base + 3600 })
		f("no later hours", perSeries, func(p *scanplan.Part) { p.Plan.To = base + 3*3600 })
		f("aggregator", perSeries, func(p *scanplan.Part) { p.Plan.Aggregator = "max" })
		f("group-by", perSeries, func(p *scanplan.Part) { p.Plan.GroupBy = []encoding.UID{operatortest.UID(1)} })

		f("mode", false, func(p *scanplan.Part) {
			if p.Mode = scanplan.PartialAggregation; !perSeries {
				p.Mode = scanplan.PerSeries
			}
		})
		f("table", false, func(p *scanplan.Part) { p.Plan.Table = "other" })
		f("layout", false, func(p *scanplan.Part) { p.Plan.Schema.TagVWidth = 4 })
		f("metric", false, func(p *scanplan.Part) { p.Plan.Metric = operatortest.UID(2) })
		f("range", false, func(p *scanplan.Part) {
			p.Range = operatortest.Plan(p.Plan.Schema, p.Plan.Metric, base+3600, base+2*3600).Ranges[0]
		})
		f("tags", false, func(p *scanplan.Part) { p.Plan.Tags = []scanplan.TagPredicate{{TagK: operatortest.UID(1)}} })
		f("exact", false, func(p *scanplan.Part) { p.Plan.Exact = true })
		f("TSUIDs", false, func(p *scanplan.Part) { p.Plan.TSUIDs = []encoding.UID{{0, 0, 1, 0, 0, 1, 0, 0, 1}} })
		f("buckets", false, func(p *scanplan.Part) { p.Plan.Downsample.Interval = 600_000 })
		f("function", false, func(p *scanplan.Part) { p.Plan.Downsample.Function = "max" })
		f("fill", false, func(p *scanplan.Part) { p.Plan.Downsample.Fill = scanplan.FillNaN })
		f("duplicates", false, func(p *scanplan.Part) { p.Plan.FixDuplicates = true })
		f("memory", false, func(p *scanplan.Part) { p.Plan.MaxBytes = 1 })
		f("hours cut", false, func(p *scanplan.Part) { p.Range.Stop = append(bytes.Clone(p.Range.Stop), 0) })
		f("hours outside the plan", false, func(p *scanplan.Part) { p.Plan.To = base + 2*3600 })
	}
}

// A bucket for the whole query depends on the query's bounds: the key of a part has them.
func TestKey_otherBuckets(t *testing.T) {
	usual := func(change func(*scanplan.Part)) ID {
		return keyed(scanplan.PerSeries, func(p *scanplan.Part) {
			p.Plan.Downsample = &scanplan.Downsample{All: true, Function: "avg"}
			change(p)
		})
	}
	if usual(func(*scanplan.Part) {}) == usual(func(p *scanplan.Part) { p.Plan.Start++ }) {
		t.Error("the key of one bucket for the whole query does not name its start")
	}
}

// Raw points do not depend on the query's bounds: the key of a part does not have them.
func TestKey_raw(t *testing.T) {
	raw := func(change func(*scanplan.Part)) ID {
		return keyed(scanplan.PerSeries, func(p *scanplan.Part) {
			p.Plan.Downsample = nil
			change(p)
		})
	}
	if raw(func(*scanplan.Part) {}) != raw(func(p *scanplan.Part) {
		p.Plan.Start, p.Plan.End = p.Plan.Start+1,
			p.Plan.End-1
	}) {
		t.Error("other bounds of the query give another key")
	}
}

// Rows of rollups, and a range that begins inside an hour, depend on the other hours of their plan.
func TestKey_noHours(t *testing.T) {
	for name, of := range map[string]func(*scanplan.Part){
		"a rollup": func(p *scanplan.Part) {
			p.Plan.Rollup = &scanplan.Rollup{Layout: encoding.RollupLayout{Interval: 3600}}
		},
		"a start inside an hour": func(p *scanplan.Part) { p.Range.Start[len(p.Range.Start)-1]++ },
	} {
		usual := keyed(scanplan.PerSeries, of)
		shorter := keyed(scanplan.PerSeries, func(p *scanplan.Part) { of(p); p.Plan.To = base + 3*3600 })
		if usual == shorter {
			t.Errorf("%s: plans with other hours have the same key", name)
		}
	}
}

// Of the windows of a plan those alone count that have points in the hours of a part.
func TestKey_windows(t *testing.T) {
	windows := func(change func(*scanplan.Window)) ID {
		return keyed(scanplan.PerSeries, func(p *scanplan.Part) {
			w := &scanplan.Window{Function: "count_over_time", Range: 600_000, Step: 600_000, First: base * 1000,
				Last: (base + 4*3600) * 1000}
			change(w)
			p.Plan.Aggregator, p.Plan.Downsample, p.Plan.Window = scanplan.None, nil, w
		})
	}
	usual := windows(func(*scanplan.Window) {})
	for name, f := range map[string]struct {
		same   bool
		change func(*scanplan.Window)
	}{
		"fewer before":       {true, func(w *scanplan.Window) { w.First += 5 * w.Step }},
		"fewer after":        {true, func(w *scanplan.Window) { w.Last -= 4 * w.Step }},
		"fewer in the hours": {false, func(w *scanplan.Window) { w.First += 9 * w.Step }},
		"another function":   {false, func(w *scanplan.Window) { w.Function = "sum_over_time" }},
		"longer ones":        {false, func(w *scanplan.Window) { w.Range++ }},
	} {
		if got := windows(f.change) == usual; got != f.same {
			t.Errorf("%s: same key %v, want %v", name, got, f.same)
		}
	}
}

// Parts of different plans with the same key, as random parts often have, have the same answer.
func TestKey_sameAnswer(t *testing.T) {
	seed := seedtest.Of(t)
	w := newWorld(t, rand.New(rand.NewPCG(seed, 0)), openPebble(t))
	type known struct {
		answer []byte
		plan   string
	}
	met, again := map[ID]known{}, 0
	for range 600 {
		p := w.part()
		k := PartKey(p)
		op, err := operator.New(w.store, p, operator.Options{})
		got, _, err := w.answer(p.Mode, op, err)
		if err != nil {
			t.Fatal(err)
		}
		if want, ok := met[k]; ok && want.plan != p.Plan.String() {
			again++
			if !bytes.Equal(got, want.answer) {
				t.Fatalf("one key, two answers:\n%s\n%s", want.plan, p.Plan.String())
			}
		}
		met[k] = known{got, p.Plan.String()}
	}
	if again < 20 {
		t.Errorf("%d of 600 parts had the key of another plan's part, want at least 20", again)
	}
}

// A histogram answer is never that of points or of another codec, and does not depend on
// what the gateway makes of it.
func TestKey_histograms(t *testing.T) {
	for _, mode := range []scanplan.Mode{scanplan.PerSeries, scanplan.PartialAggregation} {
		of := func(h *scanplan.Histograms) ID {
			return keyed(mode, func(p *scanplan.Part) { p.Plan.Histograms = h })
		}
		usual := of(&scanplan.Histograms{Codec: 42, Percentiles: []float32{50}})
		for name, other := range map[string]*scanplan.Histograms{"points": nil, "codec": {Codec: 41}, "codec 0": {}} {
			if of(other) == usual {
				t.Errorf("%s, %q: the same key, want another", name, mode)
			}
		}
		if of(&scanplan.Histograms{Codec: 42, Percentiles: []float32{99}, Buckets: true}) != usual {
			t.Errorf("%q: percentiles change what a part ships", mode)
		}
	}

	// The answer to a whole plan does depend on them.
	plan := operatortest.Plan(encoding.DefaultSchema(), operatortest.UID(1), base, base+3600)
	seen := map[ID]string{}
	for name, h := range map[string]*scanplan.Histograms{"points": nil, "50": {Codec: 42, Percentiles: []float32{50}},
		"99": {Codec: 42, Percentiles: []float32{99}}, "buckets": {Codec: 42, Buckets: true}} {
		p := plan
		p.Histograms = h
		id := PlanKey(&p, "")
		if seen[id] != "" {
			t.Errorf("%s has the key of %s", name, seen[id])
		}
		seen[id] = name
	}
}
