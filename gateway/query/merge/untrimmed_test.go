package merge

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
)

// The answer of a plan is the part of its untrimmed plan's answer that is in the plan's
// bounds. Only an infinite value outside of the bounds may fail the untrimmed plan and not
// the plan.
func TestUntrimmedAnswersAll(t *testing.T) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		s := encoding.DefaultSchema()
		s.SaltWidth, s.SaltBuckets = rapid.IntRange(0, 1).Draw(t, "salt width"), 3
		all := drawWorld(t, s)
		p := drawPlan(t, s)
		p.Fix = scanplan.Fixes(rapid.IntRange(0,
			int(scanplan.FixRateStart|scanplan.FixGaps|scanplan.FixIntegers)).Draw(t, "fix"))
		want, wantErr := whole(p, all)
		wide := p.Untrimmed()
		got, err := whole(&wide, all)
		if err != nil {
			var infinity *aggregate.InfinityError
			if wantErr == nil && !errors.As(err, &infinity) {
				t.Fatalf("the plan has an answer, the untrimmed plan none: %v", err)
			}
			return
		}
		if wantErr != nil {
			t.Fatalf("the untrimmed plan has an answer, the plan none: %v", wantErr)
		}
		for i := range got {
			got[i].Points = within(got[i].Points, p.Start, p.End)
			compared += got[i].Points.Len()
		}
		if diff := cmp.Diff(text(want), text(got)); diff != "" {
			t.Fatalf("%s\nwant -, got +: %s", p, diff)
		}
	})
	if compared == 0 {
		t.Error("no point was compared")
	}
}

// within returns the points from start to end.
func within(p encoding.Points, start, end int64) (out encoding.Points) {
	for i := range p.Len() {
		if ms, v := p.At(i); ms >= start && ms <= end {
			out.Append(ms, v)
		}
	}
	return out
}
