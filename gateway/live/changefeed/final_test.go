package changefeed

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/gateway/live/incremental"
	"downpour/pushdown/store"
)

// ordered is a law whose writes are in order: every point is later than all that its series has, no
// series is new, and none gets points after it has ended.
type ordered struct {
	law
	last  map[string]int64 // ms of the last point, by series
	names []string         // series that still may get points
	made  map[string][]string
}

// begin makes the series, with some points each.
func (o *ordered) begin() {
	o.last, o.made = map[string]int64{}, map[string][]string{}
	for i := range rapid.IntRange(1, 4).Draw(o.T, "series") {
		tags := []string{"host", string(rune('a' + i))}
		if rapid.Bool().Draw(o.T, "has dc") {
			tags = append(tags, "dc", draw(o.T, "dc", "x", "y"))
		}
		name := fmt.Sprint(tags)
		o.names, o.made[name] = append(o.names, name), tags
		o.last[name] = o.world.clock.UnixMilli() - int64(rapid.IntRange(1, 9*60_000).Draw(o.T, "first"))
		o.write(name, o.last[name])
		for range rapid.IntRange(0, 6).Draw(o.T, "more") {
			o.point(name)
		}
	}
}

func (o *ordered) write(name string, at int64) {
	o.last[name] = at
	o.world.apply(o.world.point(at, at%1000 != 0, o.value(), o.made[name]...))
}

// point writes the next point of a series, mostly at or before now.
func (o *ordered) point(name string) {
	at := o.last[name] + draw[int64](o.T, "after", 1, 999, 1000, 10_000, 61_000, 200_000, 500_000)
	if rapid.Bool().Draw(o.T, "round") {
		at += 1000 - at%1000
	}
	if at > o.world.clock.UnixMilli()+5_000 {
		return
	}
	o.write(name, at)
}

// gone removes the series that may have ended from names.
func (o *ordered) gone() {
	var rest []string
	for _, name := range o.names {
		if o.world.clock.UnixMilli()-o.last[name] <= incremental.Silence {
			rest = append(rest, name)
		}
	}
	o.names = rest
}

// differs returns a text on a time from start to before final at which the pictures differ, "" if
// there is none. Points before start have left the range.
func differs(before, after picture, start, final int64) string {
	for key := range before {
		if after[key] == nil {
			after[key] = &pictured{}
		}
	}
	for key, g := range after {
		old := before[key]
		if old == nil {
			old = &pictured{}
		}
		times := map[int64]bool{}
		for t := range g.points {
			times[t] = true
		}
		for t := range old.points {
			times[t] = true
		}
		for t := range times {
			is, here := g.points[t]
			was, there := old.points[t]
			same := here == there && is.Float == was.Float &&
				(is.Bits == was.Bits || is.Double() != is.Double() && was.Double() != was.Double())
			if t < final && t >= start && !same {
				return fmt.Sprintf("group %x at %d: was %v %v, is %v %v", key, t, there, was.Double(), here,
					is.Double())
			}
		}
	}
	return ""
}

// While points come in order, no answer differs from the one before at a time that any earlier
// answer has called final.
//
//fault:final-before-the-gap => return open
func TestFinalBefore(t *testing.T) {
	promised := 0
	rapid.Check(t, func(rt *rapid.T) {
		o := &ordered{law: law{T: rt, world: newWorld(t, false)}}
		defer o.world.close()
		o.start(o.world.store, Poll{})
		defer o.source.Close()
		o.begin()
		final, from := int64(0), int64(-1)
		var seen picture
		for range rapid.IntRange(2, 25).Draw(rt, "steps") {
			a, err := o.source.Next(context.Background(), o.world.clock)
			if err != nil {
				return // such as an overflow
			}
			now, err := o.world.fresh(o.query)
			if err != nil {
				rt.Fatal(err)
			}
			plan := o.source.subs[0].prepared.Plan
			if plan == nil || plan.From != from {
				final, from = 0, 0 // the start has moved to the next hour
				if plan != nil {
					from = plan.From
				}
			}
			if bad := differs(seen, now, plan.Start, final); bad != "" {
				rt.Fatalf("%s: final before %d, but %s", o.query, final, bad)
			}
			seen, final = now, max(final, a.FinalBefore)
			if a.FinalBefore > plan.Start {
				promised++
			}
			o.world.clock = o.world.clock.Add(time.Duration(rapid.IntRange(1, 200_000).Draw(rt,
				"wait")) * time.Millisecond)
			o.gone()
			for range rapid.IntRange(0, 3).Draw(rt, "points") {
				if len(o.names) > 0 {
					o.point(rapid.SampledFrom(o.names).Draw(rt, "name"))
				}
			}
		}
	})
	if promised < 20 {
		t.Errorf("%d answers have a finalBefore behind their start, want 20 or more", promised)
	}
	t.Log(promised, "answers promise something")
}

// Without looks for late points, points in order are in the answer at the next tick, from what is
// kept of the rows: with all forms of cells, with rows that were compacted, and with rows that are
// too long to be kept.
func TestLaw_polledInOrder(t *testing.T) {
	var read, changed int64
	rapid.Check(t, func(rt *rapid.T) {
		o := &ordered{law: law{T: rt, world: newWorld(t, true), seen: picture{}}}
		defer o.world.close()
		o.world.cells = true
		o.start(unwatched{o.world.store}, Poll{Late: 1000 * time.Hour, Alive: 1000 * time.Hour})
		defer o.source.Close()
		room := draw[int64](rt, "room", 128<<20, 128<<20, 4*20*keptBytes)
		o.begin()
		for range rapid.IntRange(2, 20).Draw(rt, "steps") {
			o.tick()
			for _, sub := range o.source.subs {
				if p, ok := sub.finder.(*poller); ok {
					for _, h := range p.hours {
						h.keptLimit = room / 4
					}
				}
			}
			o.world.clock = o.world.clock.Add(time.Duration(rapid.IntRange(1, 200_000).Draw(rt,
				"wait")) * time.Millisecond)
			for range rapid.IntRange(0, 4).Draw(rt, "points") {
				name := rapid.SampledFrom(o.names).Draw(rt, "name")
				o.world.cells = rapid.IntRange(0, 9).Draw(rt, "appended") > 0
				switch rapid.IntRange(0, 14).Draw(rt, "what") {
				case 0: // the last point again, with another value, perhaps of another type
					o.write(name, o.last[name])
				case 1:
					key, _ := o.world.row(o.last[name], o.made[name]...)
					o.world.apply(store.Mutation{
						Row:       key,
						Family:    "t",
						Qualifier: []byte{1, 0, 0},
						Value:     []byte(`{"startTime":1}`),
					})
				case 2:
					key, _ := o.world.row(o.last[name], o.made[name]...)
					o.world.compact(rt, key)
				default:
					o.point(name)
				}
			}
		}
		o.tick()
		s := o.source.feed.Stats()
		read, changed = read+s.Rows, changed+s.Changed
	})
	if read == 0 || read >= changed {
		t.Errorf("%d rows were read for %d that changed, want some but fewer: many are kept", read, changed)
	}
}

// The watermark in simple cases.
func TestFinalBefore_values(t *testing.T) {
	const second = 1000
	now := epoch.Unix() * second
	ab, minute := `"tags":{"host":"a|b"}`, int64(60_000)
	last := now - 30*second // the last point of b; a's is 20 s later
	for _, c := range []struct {
		query string
		want  int64
	}{
		{`"aggregator":"sum",` + ab, last},
		{`"aggregator":"none",` + ab, last},                                        // the earliest of all groups
		{`"aggregator":"sum","downsample":"1m-avg",` + ab, last / minute * minute}, // the open bucket
		{`"aggregator":"sum","downsample":"1m-avg-zero",` + ab, last / minute * minute},
		{`"aggregator":"sum","rate":true,` + ab, last},
		{`"aggregator":"sum","rate":true,"downsample":"1m-avg",` + ab, last / minute * minute},
		{`"aggregator":"sum","downsample":"0all-sum",` + ab, 0},       // run in full, so nothing is final
		{`"aggregator":"sum","tags":{"host":"once"}`, now - 3*second}, // its one point
		{`"aggregator":"sum","rate":true,"tags":{"host":"once"}`, 0},  // a second rate lets the first count
		{`"aggregator":"sum","tags":{"host":"gone"}`,
			epoch.UnixMilli()}, // the series has ended: a new point would be after now
		{`"aggregator":"sum","tags":{"host":"gone|once"}`,
			now - 3*second}, // a series that has ended holds nothing back
		{`"aggregator":"sum","tags":{"host":"seldom|once"}`,
			now - 1500*second}, // silent for less than ten times its step
		{`"aggregator":"sum","tags":{"host":"noted"}`, 0}, // no point at all
	} {
		w := newWorld(t, false)
		put := func(host string, ago int64) {
			w.apply(w.point(now-ago*second, false, encoding.IntValue(ago), "host", host))
		}
		put("gone", 1700)
		put("gone", 1690)
		put("seldom", 1700)
		put("seldom", 1500)
		put("once", 3)
		key, _ := w.row(now, "host", "noted")
		w.apply(store.Mutation{Row: key, Family: "t", Qualifier: []byte{1, 0, 0}, Value: []byte(`{"startTime":1}`)})
		for ago := int64(600); ago >= 10; ago -= 10 {
			put("a", ago)
			put("b", ago+20)
		}
		s := w.openSource(fmt.Sprintf(`{"start":"1h-ago","queries":[{"metric":"m",%s}]}`, c.query), w.store, Poll{})
		a, err := s.Next(t.Context(), w.clock)
		if err != nil || a.FinalBefore != c.want {
			t.Errorf("%s: final before %d, want %d (%+d and %+d s of now); %v", c.query, a.FinalBefore, c.want,
				(a.FinalBefore-now)/second, (c.want-now)/second, err)
		}
		s.Close()
		w.close()
	}
}
