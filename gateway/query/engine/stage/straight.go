package stage

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"downpour/pushdown/operator"
)

// straight answers a plan that met a row of no full hour again, with rows cut at full hours:
// see operator.CrookedError. Its answers are neither cached nor shared.
type straight struct {
	log    *slog.Logger
	logged sync.Map // metrics with such rows that are in the log already
	next   Stage
	cut    Stage
}

func (s *straight) Groups(ctx context.Context, r *Request) (Answer, error) {
	a, err := s.next.Groups(ctx, r)
	var crooked *operator.CrookedError
	if !errors.As(err, &crooked) {
		return a, err
	}
	if _, logged := s.logged.LoadOrStore(string(r.Plan.Metric), true); !logged {
		s.log.Warn(
			"a metric has rows of no full hour: its queries take longer until gateway fsck --fix has moved their points", "row", crooked.Text)
	}
	r.Trace.Add("again with rows cut at full hours", 0, map[string]any{"reason": crooked.Text})
	p := *r.Plan
	p.Straight = true
	return s.cut.Groups(ctx, r.withScan(&p))
}
