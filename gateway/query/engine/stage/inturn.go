package stage

import (
	"context"
	"errors"
	"time"

	"downpour/pushdown/process/memory"
)

// inTurn answers a request again if it was refused memory that other requests held: otherwise many
// concurrent queries would refuse each other memory that any of them could have alone. A failed try
// has released its memory; the next one begins when the request has the turn, see
// memory.Account.Turn.
type inTurn struct{ next Stage }

func (s *inTurn) Groups(ctx context.Context, r *Request) (Answer, error) {
	a, err := s.next.Groups(ctx, r)
	account := memory.Of(ctx)
	var busy *memory.BusyError
	// Live queries are evaluated again at their next tick anyway.
	if !errors.As(err, &busy) || account.Class() != memory.Query {
		return a, err
	}

	until := lastTry(ctx, time.Now())
	end, err := account.Turn(ctx, busy, time.Until(until))
	if err != nil {
		return a, err
	}
	defer end()
	for {
		r.Trace.Add("again in turn", 0, map[string]any{"reason": busy.Error()})
		a, err := s.next.Groups(ctx, r)
		if !errors.As(err, &busy) || ctx.Err() != nil || !time.Now().Before(until) {
			return a, err
		}
	}
}

// lastTry returns until when a query that was refused memory may begin again: as long as a
// reservation waits, or longer if that leaves as much of the query's time for the work.
func lastTry(ctx context.Context, now time.Time) time.Time {
	until := now.Add(memory.Patience)
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-memory.Patience).After(until) {
		return deadline.Add(-memory.Patience)
	}
	return until
}
