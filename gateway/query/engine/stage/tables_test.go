package stage

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/query"
	"downpour/gateway/query/merge"
	"downpour/gateway/query/plan"
	"downpour/pushdown/rollup"
)

// pointsAt returns a point at each time, all with one value, which shows their origin.
func pointsAt(value int64, times ...int64) (p encoding.Points) {
	for _, t := range times {
		p.Append(t, encoding.IntValue(value))
	}
	return p
}

// Groups of rollups and of raw data are joined by their keys: rollups up to the cut and raw data
// from it on. A tag is kept unless the two groups have different values for it, or one of them has
// aggregated it.
func TestJoinAt(t *testing.T) {
	uid := func(n byte) encoding.UID { return encoding.UID{n} }
	tag := func(k, v byte) encoding.TagPair { return encoding.TagPair{K: uid(k), V: uid(v)} }
	before := []merge.Group{
		{
			Key:        []byte("a"),
			Spans:      [][]byte{{1}},
			Tags:       []encoding.TagPair{tag(1, 1), tag(2, 1), tag(3, 1), tag(9, 1)},
			Aggregated: []encoding.UID{uid(5)},
			TSUIDs:     []encoding.UID{uid(1), uid(3)},
			Points:     pointsAt(1, 10, 20, 30),
		},
		{Key: []byte("c"), Points: pointsAt(1, 10, 20)},
	}
	after := []merge.Group{
		{
			Key:    []byte("a"),
			Spans:  [][]byte{{2}},
			Tags:   []encoding.TagPair{tag(1, 1), tag(2, 2), tag(4, 1), tag(5, 1), tag(9, 1)},
			TSUIDs: []encoding.UID{uid(2), uid(3)},
			Points: pointsAt(2, 10, 20, 30),
		},
		{Key: []byte("b"), Points: pointsAt(2, 20)},
	}
	want := []merge.Group{
		{
			Key:        []byte("a"),
			Spans:      [][]byte{{1}, {2}},
			Tags:       []encoding.TagPair{tag(1, 1), tag(3, 1), tag(4, 1), tag(9, 1)},
			Aggregated: []encoding.UID{uid(2), uid(5)},
			TSUIDs:     []encoding.UID{uid(1), uid(2), uid(3)},
			Points: encoding.Points{
				Time:  []int64{10, 20, 30},
				Bits:  []uint64{1, 2, 2},
				Float: []bool{false, false, false},
			},
		},
		{Key: []byte("b"), Points: pointsAt(2, 20)},
		{Key: []byte("c"), Points: pointsAt(1, 10)},
	}
	if d := cmp.Diff(want, joinAt(before, after, 20)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// counting answers nothing, counts points of the plan that it gets, and then fails with its errors, one a call.
type counting struct {
	points int
	errs   []error
}

func (c *counting) Groups(_ context.Context, r *Request) (Answer, error) {
	err := c.errs[0]
	c.errs = c.errs[1:]
	return Answer{Plan: r.Compiled}, errors.Join(r.Points.set(c.points), err)
}

// The points before a cut and those behind it count together. Those of a try that failed count no more: the next
// try has them again.
func TestBehindCut_points(t *testing.T) {
	config, err := rollup.Parse([]byte(`{"aggregationIds":{"sum":0},"intervals":[
		{"table":"tsdb","preAggregationTable":"pre","interval":"1m","rowSpan":"1h","defaultInterval":true},
		{"table":"r1h","preAggregationTable":"r1h-pre","interval":"1h","rowSpan":"1d","delaySla":"2h"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	const start, end = 1_357_095_845, 1_357_106_645 // three hours
	q, err := query.ParseURI(url.Values{"start": {fmt.Sprint(start)}, "end": {fmt.Sprint(end)}, "m": {"sum:1h-sum:m"}},
		time.Unix(end, 0))
	if err != nil {
		t.Fatal(err)
	}
	options := plan.Options{
		Schema:  encoding.DefaultSchema(),
		Table:   "tsdb",
		Rollups: &plan.Rollups{Config: config, Split: true, Now: end * 1000},
	}
	c, err := plan.Compile(q, 0, plan.Names{Metric: encoding.UID{0, 0, 1}}, options)
	if err != nil || c.Rest() == nil {
		t.Fatalf("%v, and no rest of raw data behind the rollups", err)
	}

	all := NewAnswerPoints(func(int) error { return nil })
	r := &Request{Compiled: c, Query: q, Sub: &q.Queries[0], Points: all.Plan()}
	busy := errors.New("others hold the memory")
	s := &behindCut{next: &counting{10, []error{nil, nil}}, raw: &counting{5, []error{busy, nil}}}
	for _, want := range []struct {
		err    error
		points int64
	}{{busy, 10}, {nil, 15}} {
		_, err := s.Groups(t.Context(), r)
		if got := all.made.Load(); !errors.Is(err, want.err) || got != want.points {
			t.Errorf("error %v, %d points counted; want %v and %d", err, got, want.err, want.points)
		}
	}
}
