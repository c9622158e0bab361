package operator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"downpour/pushdown/operator"
)

// A row of histograms of another codec than the one that is configured is not called corrupt.
func TestDataError_codec(t *testing.T) {
	m, all := allKinds(3)
	for _, name := range []string{"histograms", "sums of histograms"} {
		k := all[name]
		h := *k.part.Plan.Histograms
		h.Codec++
		k.part.Plan.Histograms = &h
		_, _, err := answer(t.Context(), m, k)
		var data *operator.DataError
		if !errors.As(err, &data) || strings.Contains(data.Text, "corrupt") ||
			!strings.Contains(data.Text, fmt.Sprintf("has codec %d, want %d", h.Codec-1, h.Codec)) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// The error of a damaged row advises the fix that leaves it out, where the plan can have one: those of histograms
// cannot.
func TestDataError_advice(t *testing.T) {
	m, all := allKinds(3)
	for i := range m.Rows {
		last := &m.Rows[i].Cells[len(m.Rows[i].Cells)-1]
		last.Value = last.Value[:len(last.Value)-1]
	}
	for name, advised := range map[string]bool{"raw": true, "groups": true, "histograms": false} {
		_, _, err := answer(t.Context(), m, all[name])
		if err == nil || !strings.Contains(err.Error(), "is corrupt") ||
			strings.Contains(err.Error(), "fix=damaged") != advised {
			t.Errorf("%s: got %v, want the advice %t", name, err, advised)
		}
	}
}

// Errors say what they are about, and how much of it was needed.
func TestErrors_text(t *testing.T) {
	for want, err := range map[string]error{
		"the query reads more than 5 points from the store, at least 7": &operator.LimitError{What: operator.Points,
			Limit: 5, Need: 7},
		"the query reads more than 5 bytes from the store, at least 7": &operator.LimitError{What: operator.Bytes,
			Limit: 5, Need: 7},
		"5 queries that read much are running, and none of them has ended in time": &operator.LimitError{
			What: operator.Queries, Limit: 5},
		"the result takes more than 5 bytes of memory, at least 7": &operator.LimitError{What: operator.States,
			Limit: 5, Need: 7},
		"a fault of the program: panic: oops": operator.Recovered("oops"),
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if stack := operator.Recovered("oops").Stack; !strings.Contains(stack, t.Name()) {
		t.Errorf("the stack is %s, want that of the caller", stack)
	}
}
