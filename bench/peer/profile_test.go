package peer

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"
)

// Each sample counts to the innermost function that is named, also one that was inlined; what has
// no such function counts to the sum alone.
func TestInnermost(t *testing.T) {
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
	}
	at := func(names ...string) *profile.Location { // inlined functions first
		l := &profile.Location{ID: uint64(len(p.Location) + 1)}
		for _, name := range names {
			f := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name}
			p.Function = append(p.Function, f)
			l.Line = append(l.Line, profile.Line{Function: f})
		}
		p.Location = append(p.Location, l)
		return l
	}
	decode := at("downpour/encoding.Decode")
	run := at("downpour/pushdown/operator.(*part).run")
	malloc := at("runtime.mallocgc")
	take := at("downpour/gateway/query/merge.(*slab[go.shape.struct { a []string; b int }]).take",
		"downpour/gateway/query/merge.(*aggregation).group")
	for nanoseconds, stack := range map[int64][]*profile.Location{
		1:      {decode, run},
		20:     {malloc, decode, run},
		300:    {malloc},
		4000:   {take, run},
		50_000: {run},
	} {
		p.Sample = append(p.Sample, &profile.Sample{Location: stack, Value: []int64{1, nanoseconds}})
	}
	var taken bytes.Buffer
	if err := p.Write(&taken); err != nil {
		t.Fatal(err)
	}

	got, total, err := innermost(taken.Bytes(), "cpu", shown)
	want := []weighed{
		{"downpour/pushdown/operator.(*part).run", 50_000},
		{"downpour/gateway/query/merge.(*slab[…]).take", 4000},
		{"downpour/encoding.Decode", 21},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(weighed{})); err != nil || total != 54_321 || d != "" {
		t.Errorf("sum %d, want 54321; error %v; -want +got\n%s", total, err, d)
	}
	for _, kind := range []string{"cpu", "inuse_space"} {
		if _, _, err := innermost(taken.Bytes()[:len(kind)], kind, shown); err == nil {
			t.Errorf("%s of a cut profile: no error", kind)
		}
	}
	if _, _, err := innermost(taken.Bytes(), "inuse_space", shown); err == nil {
		t.Error("bytes of a profile of time: no error")
	}
}
