package retention

import (
	"context"
	"crypto/sha256"
	"downpour/pushdown/process/lasting"
	"downpour/pushdown/process/metrics"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// Worker runs a job now and then, next to other workers on the same tables.
type Worker struct {
	Job   *Job
	Turns Turns
	Log   *slog.Logger

	totals metrics.Totals[totals]
}

const (
	// every is the time between two runs, whichever worker makes them.
	every = time.Hour
	// wholeEvery is the time between two runs over all rows that are past. Those in between
	// leave out what the last one has deleted: until HBase's next major compaction a scan has
	// to pass over every deleted row. So a late point of an hour that is past may stay so long.
	wholeEvery = 24 * time.Hour
	// askEvery is how often a worker asks whether it is its turn, and heldEvery how often while
	// another one has it, which may die: asking costs a read then, and else two writes.
	askEvery  = 5 * time.Minute
	heldEvery = 10 * time.Second
)

// state is what runs leave for later ones, as JSON. Times are in seconds.
type state struct {
	Rules string `json:"rules"` // a hash of their text
	Tried int64  `json:"tried"` // begin of the last run, also of one that was refused
	Done  int64  `json:"done"`  // begin of the last run that has deleted all that was past
	Whole int64  `json:"whole"` // begin of the last such run over all rows
	Sure  int64  `json:"sure"`  // begin of the last run whose clock was not in doubt, see Job.LastRun
	// Place is set while deleted rows still take their place on the disk, so that no run has to
	// delete them again for it.
	Place bool `json:"place,omitempty"`
}

// Run works until ctx ends. The first run comes at once, unless one was less than an hour ago; the
// times of later ones follow from that, and not from the hour, when all collectors are busy.
func (w *Worker) Run(ctx context.Context) {
	lasting.Rounds(ctx, func(ctx context.Context) (time.Duration, error) {
		turn, ok, err := w.Turns.Try(ctx)
		switch {
		case err != nil:
			return askEvery, err
		case !ok:
			return heldEvery, nil
		}
		return askEvery, w.once(ctx, turn)
	}, func(err error) {
		w.totals.Add(failure)
		w.Log.Warn("cannot delete expired rows", "err", err)
	})
}

// once makes a run if it is time, and gives the turn back.
func (w *Worker) once(ctx context.Context, turn Turn) (err error) {
	defer func() { err = errors.Join(err, release(ctx, turn)) }()
	defer func() {
		// The process has other work, which goes on.
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()

	now := w.Job.Now().Unix()
	s := w.read(turn)
	w.totals.Add(func(t *totals) { t.done = s.Done })
	work, cancel := during(ctx, turn)
	defer cancel()
	if s.Place {
		err = w.reclaim(work, turn, s)
	}
	// A time in the future is that of a clock which was wrong.
	if since := now - s.Tried; since >= 0 && since < int64(every/time.Second) {
		return err
	}
	return errors.Join(err, w.run(work, turn, s, now))
}

// reclaim tries again to give the place of deleted rows back.
func (w *Worker) reclaim(ctx context.Context, turn Turn, s *state) error {
	if err := w.Job.reclaim(ctx, s.Done); err != nil {
		return err
	}
	s.Place = false
	return w.save(ctx, turn, s)
}

// run makes a run, and saves what it leaves.
func (w *Worker) run(work context.Context, turn Turn, s *state, now int64) error {
	var from int64
	if whole := now - s.Whole; whole >= 0 && whole < int64(wholeEvery/time.Second) && s.Done <= now {
		from = s.Done
	}

	job := *w.Job
	job.LastRun = s.Sure
	report, err := job.Run(work, from, 0)
	w.totals.Add(func(t *totals) { t.deleted += report.Deleted }) // also of a run that ended with an error
	var refused *RefusedError
	if errors.As(err, &refused) {
		w.totals.Add(failure)
		w.Log.Warn("retention: "+refused.Error(), "table", refused.Table, "rows", refused.Rows)
		s.Tried = report.At
		if refused.ahead == 0 {
			s.Sure = report.At
		}
		return w.save(work, turn, s)
	}
	if report.Deleted > 0 {
		w.Log.Info("retention: rows deleted", "rows", report.Deleted)
	}
	var tables *tablesError
	if errors.As(err, &tables) && tables.others > 0 {
		// It may be so for days: the others are not read again for it before it is time.
		s.Tried = report.At
		return errors.Join(err, w.save(work, turn, s))
	}
	var place *placeError
	if err != nil && !errors.As(err, &place) {
		return err
	}
	s.Tried, s.Done, s.Sure = report.At, report.At, report.At
	if from == 0 {
		s.Whole = report.At
	}
	w.totals.Add(func(t *totals) { t.done = s.Done })
	s.Place = s.Place || place != nil
	return errors.Join(err, w.save(work, turn, s))
}

// RunNow makes a run over all rows once it is the caller's turn. say is called if it has to wait.
// allowed is the number of rows that may go, 0 for what the guard allows.
func (w *Worker) RunNow(ctx context.Context, allowed int64, say func(line string)) (report *Report, err error) {
	turn, ok, err := w.Turns.Try(ctx)
	if err != nil {
		return nil, err
	}
	if !ok {
		say("waits for another run to end")
		if turn, err = w.Turns.Take(ctx); err != nil {
			return nil, err
		}
	}
	defer func() { err = errors.Join(err, release(ctx, turn)) }()

	work, cancel := during(ctx, turn)
	defer cancel()
	var place *placeError
	var tables *tablesError
	if report, err = w.Job.Run(work, 0, allowed); errors.As(err, &tables) || err != nil && !errors.As(err, &place) {
		return report, err
	}
	s := w.read(turn)
	s.Tried, s.Done, s.Whole, s.Sure, s.Place = report.At, report.At, report.At, report.At, place != nil
	return report, errors.Join(err, w.save(work, turn, s))
}

// read returns the state that earlier runs under the same rules have left. A state that cannot be
// read is none: then all rows are looked at.
func (w *Worker) read(t Turn) *state {
	s := &state{}
	rules := fmt.Sprintf("%x", sha256.Sum256([]byte(w.Job.Rules.Text())))
	if err := json.Unmarshal(t.State(), s); err != nil || s.Rules != rules {
		return &state{Rules: rules}
	}
	return s
}

func (w *Worker) save(ctx context.Context, t Turn, s *state) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return t.Save(ctx, text)
}

// during returns a context that ends with ctx, and with the turn.
func during(ctx context.Context, t Turn) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(t.Context(), cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// releaseWithin is how long it may take to give a turn back.
const releaseWithin = 5 * time.Second

// release gives a turn back, also when ctx has ended: otherwise the next worker waits until it is
// seen that this one is gone.
func release(ctx context.Context, t Turn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer cancel()
	return t.Release(ctx)
}
