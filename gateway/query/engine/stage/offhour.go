package stage

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"downpour/pushdown/operator"
)

// splitOffHour executes a plan again, with Plan.SplitOffHour, if a part has failed because it has read an
// off-hour row, one whose base time is not a full hour. The answers of the second execution are neither
// cached nor shared, because they depend on rows outside the parts' keys.
type splitOffHour struct {
	log    *slog.Logger
	logged sync.Map // metrics with such rows that are in the log already
	next   Stage
	split  Stage // executes a plan with SplitOffHour
}

func (s *splitOffHour) Groups(ctx context.Context, r *Request) (Answer, error) {
	a, err := s.next.Groups(ctx, r)
	var offHour *operator.OffHourError
	if !errors.As(err, &offHour) {
		return a, err
	}
	if _, logged := s.logged.LoadOrStore(string(r.Plan.Metric), true); !logged {
		s.log.Warn(
			"a metric has rows of no full hour: "+
				"its queries take longer until gateway fsck --fix has moved their points",
			"row", offHour.Text)
	}
	r.Trace.Add("again with rows cut at full hours", 0, map[string]any{"reason": offHour.Text})
	p := *r.Plan
	p.SplitOffHour = true
	return s.split.Groups(ctx, r.WithScan(&p))
}
