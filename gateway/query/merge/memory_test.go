package merge

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
)

// Series of a group with the same times share one list of them, both for each segment and when
// segments are joined. A series with other times has a list of its own.
func TestTimes_shared(t *testing.T) {
	s := encoding.DefaultSchema()
	p := newPlan(s, uid(1), base*1000, (base+3600)*1000, &scanplan.Downsample{Interval: 60_000, Function: "sum"})
	p.Aggregator, p.GroupBy = "zimsum", []encoding.UID{uid(1)}
	minutes := map[uint64][2][]int64{} // by host: the minutes of its first and its second segment
	for host := range uint64(4) {
		minutes[host] = [2][]int64{{0, 1}, {2, 3}}
	}
	minutes[3] = [2][]int64{{4, 5}, {6, 8}} // in the group of host 2, whose times are those of hosts 0 and 1
	m := New(p, nil)
	for half := range 2 {
		var rows []batch.Series
		for host := range uint64(4) {
			one := tagged(s, encoding.Points{}, 1, 1+host/2, 2, 1+host)
			row := batch.Series{Span: one.span(s)}
			for _, k := range minutes[host][half] {
				row.Time, row.Value = append(row.Time, (base+60*k)*1000), append(row.Value, float64(host+1))
			}
			rows = append(rows, row)
		}
		if err := m.Add(p.Ranges[0], record(rows...)); err != nil {
			t.Fatal(err)
		}
	}
	same := func(a, b []int64) bool { return &a[0] == &b[0] }
	if k := m.kept; !same(k[0].first.time, k[2].first.time) || same(k[0].first.time, k[0].last.time) ||
		same(k[2].first.time, k[3].first.time) {
		t.Error("segments: want one list for the same times, and other lists for other times")
	}
	a, err := m.newAggregation()
	if err != nil {
		t.Fatal(err)
	}
	groups, err := m.groupSeries(m.inSpanOrder())
	if err != nil {
		t.Fatal(err)
	}
	var got [][]float64 // minute and value
	for _, members := range groups {
		g, err := a.group(members)
		if err != nil {
			t.Fatal(err)
		}
		if shared := same(a.series[0].Time, a.series[1].Time); shared != (len(got) == 0) {
			t.Errorf("joined times of group %x are shared: %v, want it of the first group only", g.Key, shared)
		}
		var points []float64
		for i := range g.Points.Len() {
			ms, v := g.Points.At(i)
			points = append(points, float64(ms/1000-base)/60, v.Double())
		}
		got = append(got, points)
	}
	want := [][]float64{{0, 3, 1, 3, 2, 3, 3, 3}, {0, 3, 1, 3, 2, 3, 3, 3, 4, 4, 5, 4, 6, 4, 8, 4}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("want -, got +: %s", d)
	}
}
