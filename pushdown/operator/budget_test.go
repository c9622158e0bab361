package operator_test

import (
	"errors"
	"testing"

	"downpour/pushdown/operator"
)

// A budget may be used up to its last point and byte. What was refused counts until it is given back, as all that is
// given back; what is left is 1 at least if there is a bound.
func TestBudget(t *testing.T) {
	none, points, bytes := operator.LimitError{}, operator.Points, operator.Bytes
	type pair [2]int64 // points and bytes
	refused := func(what operator.Resource, limit, need int64) operator.LimitError {
		return operator.LimitError{What: what, Limit: limit, Need: need}
	}
	for name, c := range map[string]struct {
		budget, spent, given pair
		want                 operator.LimitError
		left                 pair
	}{
		"no bounds":        {pair{0, 0}, pair{1000, 1000}, pair{}, none, pair{0, 0}},
		"some":             {pair{10, 20}, pair{3, 5}, pair{}, none, pair{7, 15}},
		"all":              {pair{10, 20}, pair{10, 20}, pair{}, none, pair{1, 1}},
		"a point too many": {pair{10, 20}, pair{11, 5}, pair{}, refused(points, 10, 11), pair{1, 15}},
		"a byte too many":  {pair{10, 20}, pair{4, 21}, pair{}, refused(bytes, 20, 21), pair{6, 1}},
		"too many of both": {pair{10, 20}, pair{12, 22}, pair{}, refused(points, 10, 12), pair{1, 1}},
		"points alone":     {pair{10, 0}, pair{4, 21}, pair{}, none, pair{6, 0}},
		"bytes alone":      {pair{0, 20}, pair{11, 4}, pair{}, none, pair{0, 16}},
		"given back":       {pair{10, 20}, pair{11, 21}, pair{9, 18}, refused(points, 10, 11), pair{8, 17}},
	} {
		b := operator.NewBudget(c.budget[0], c.budget[1])
		err := b.Spend(t.Context(), c.spent[0], c.spent[1])
		var limit *operator.LimitError
		if errors.As(err, &limit) != (c.want != none) || limit != nil && *limit != c.want {
			t.Errorf("%s: got %v, want %+v", name, err, c.want)
		}
		b.Refund(c.given[0], c.given[1])
		if p, n := b.Left(); (pair{p, n}) != c.left || b.Spent() != c.spent[0]-c.given[0] {
			t.Errorf("%s: %d and %d are left, %d points spent, want %d left", name, p, n, b.Spent(), c.left)
		}
	}
}

// The refusal of a server, which counts one part alone, has the figures of the whole budget, if that has a bound.
func TestBudget_refusal(t *testing.T) {
	for name, c := range map[string]struct {
		points, bytes int64 // of the budget; 3 points and 5 bytes of it were spent
		what          operator.Resource
		limit, need   int64
	}{
		"points":            {10, 20, operator.Points, 10, 3 + 8},
		"bytes":             {10, 20, operator.Bytes, 20, 5 + 8},
		"points, no bound":  {0, 20, operator.Points, 7, 8},
		"bytes, no bound":   {10, 0, operator.Bytes, 7, 8},
		"memory, no budget": {10, 20, operator.Memory, 7, 8},
	} {
		b := operator.NewBudget(c.points, c.bytes)
		_ = b.Spend(t.Context(), 3, 5) // less than there is
		got := *b.Refusal(&operator.LimitError{What: c.what, Limit: 7, Need: 8})
		if want := (operator.LimitError{What: c.what, Limit: c.limit, Need: c.need}); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

// A context knows the query that it belongs to.
func TestQueryOf(t *testing.T) {
	if none, one := operator.QueryOf(t.Context()), operator.QueryOf(operator.WithQuery(t.Context(), "q")); none != "" ||
		one != "q" {
		t.Errorf("got %q and %q, want none and q", none, one)
	}
}
