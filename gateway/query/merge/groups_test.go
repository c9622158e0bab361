package merge

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
)

// Groups that are made one by one, in any order, are those that Finish makes at once, and they are
// described before their points are made.
func TestGroupsAreThoseOfFinish(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := encoding.DefaultSchema()
		all := drawWorld(t, s)
		p := drawPlan(t, s)
		want, wantErr := whole(p, all)
		m, err := added(p, all, func(int) int { return 0 })
		if err != nil {
			t.Fatal(err)
		}
		gs, err := m.Groups()
		if err != nil {
			t.Fatal(err)
		}
		got := gs.Described
		for _, i := range rapid.Permutation(indexes(len(got))).Draw(t, "order") {
			p, pointsErr := gs.Points(i)
			if got[i].Points = p; pointsErr != nil {
				err = pointsErr
			}
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("got error %v, want %v", err, wantErr)
		}
		for i := range want {
			want[i].Notes = nil
		}
		if diff := cmp.Diff(text(want), text(got)); err == nil && diff != "" {
			t.Fatalf("want -, got +: %s", diff)
		}
	})
}

func indexes(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}
