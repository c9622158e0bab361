package peer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"downpour/bench/workload"
	"downpour/integration/compare"
)

// ErrDiffer is the class of answers that are not the same.
var ErrDiffer = errors.New("the answers differ")

// tries is how often two servers are asked before they are said to differ: a
// TSD that has just started can lose rows while its UID cache is cold.
const tries = 3

// Agree asks two systems the same and returns the first difference. Two with
// OpenTSDB's API on the same tables must agree to the last bit and in the order
// of results. An empty answer is an error: there is nothing to be measured.
func Agree(ctx context.Context, want, got *Server, q workload.Query) error {
	return again(ctx, want, got, q, want.Prometheus || got.Prometheus)
}

// AgreeInValues is Agree for systems with data of their own: where names have
// other UIDs, results come in another order, and sums are added in another. The
// values of each group must agree to 1e-9.
func AgreeInValues(ctx context.Context, want, got *Server, q workload.Query) error {
	return again(ctx, want, got, q, true)
}

// again compares until the answers are equal or tries are used up. values compares
// values instead of texts.
func again(ctx context.Context, want, got *Server, q workload.Query, values bool) (err error) {
	for range tries {
		if err = agree(ctx, want, got, q, values); !errors.Is(err, ErrDiffer) {
			return err
		}
	}
	return err
}

// agree asks both once. It returns ErrDiffer if the answers are not the same.
func agree(ctx context.Context, want, got *Server, q workload.Query, values bool) error {
	w, err := want.Ask(ctx, q)
	if err != nil {
		return err
	}
	g, err := got.Ask(ctx, q)
	if err != nil {
		return err
	}

	compared := differ
	if values {
		compared = differValues
	}
	difference, err := compared(want, got, q, w, g)
	if err != nil {
		return fmt.Errorf("%s: %w", q, err)
	}

	if difference != "" {
		return fmt.Errorf("%w: %s, %s (wanted) and %s: %s", ErrDiffer, q, want.Name, got.Name, difference)
	}
	return nil
}

// differ returns the first difference of two answers of OpenTSDB's API, "" if there is
// none that is not permitted.
func differ(_, _ *Server, _ workload.Query, w, g []byte) (string, error) {
	r, err := compare.Comparer{Permits: compare.Standard}.JSON(w, g)
	if err != nil {
		return "", err
	}
	if !r.Equal() {
		return r.Differences[0].String(), nil
	}

	// Equal, but without a group in it.
	if len(w) < len(`[{}]`) {
		return "", errors.New("the answer is empty")
	}
	return "", nil
}

// differValues returns the first difference of the values of two answers, in whatever
// API, "" if there is none.
func differValues(want, got *Server, q workload.Query, w, g []byte) (string, error) {
	// The groups and buckets of a Prometheus are found by the query. Answers of OpenTSDB's
	// API name both, so there the query may be one that parseM does not know.
	var p m
	switch {
	case q.PromQL != "":
		return differSeries(w, g)
	case want.Prometheus || got.Prometheus:
		var err error
		if p, err = parseM(q.M); err != nil {
			return "", err
		}
	}

	a, err := want.read(p, w)
	if err != nil {
		return "", err
	}
	b, err := got.read(p, g)
	if err != nil {
		return "", err
	}

	if len(a) == 0 {
		return "", errors.New("the answer is empty")
	}
	return a.differs(b), nil
}

// differSeries returns the first difference of the values of two answers of Prometheus' API, "" if there is none.
func differSeries(w, g []byte) (string, error) {
	a, err := readSeries(w)
	if err != nil {
		return "", err
	}
	b, err := readSeries(g)
	if err == nil && len(a) == 0 {
		err = errors.New("the answer is empty")
	}
	return a.differs(b), err
}

// read reads an answer of the server to the query p.
func (s *Server) read(p m, text []byte) (answer, error) {
	if s.Prometheus {
		return readPrometheus(p, text)
	}
	return readOpenTSDB(p, text)
}

// differs returns the first difference, empty when there is none. Values may differ by
// rounding, because sums are added in another order.
func (a answer) differs(b answer) string {
	groups := maps.Clone(a)
	maps.Copy(groups, b)
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		// Only one of the two has the group.
		if (a[group] == nil) != (b[group] == nil) {
			return fmt.Sprintf("group {%s}: want %d points, got %d", group, len(a[group]), len(b[group]))
		}
		times := maps.Clone(a[group])
		maps.Copy(times, b[group])
		for _, t := range slices.Sorted(maps.Keys(times)) {
			x, inA := a[group][t]
			y, inB := b[group][t]
			switch {
			case !inA:
				return fmt.Sprintf("group {%s} at %d: want nothing, got %v", group, t, y)
			case !inB:
				return fmt.Sprintf("group {%s} at %d: want %v, got nothing", group, t, x)
			case math.Abs(x-y) > 1e-9*max(math.Abs(x), math.Abs(y)):
				return fmt.Sprintf("group {%s} at %d: want %v, got %v", group, t, x, y)
			}
		}
	}

	return ""
}
