package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Families are column families of a table.
type Families struct {
	Table string
	Names []string
}

// startTimeout bounds the question at a start: what starts does not need whom it asks.
const startTimeout = 5 * time.Second

// CheckReadable asks a store that has Features.CheckReadable. If that could not be found out, unknown is called with the reason,
// and there is no error.
func CheckReadable(ctx context.Context, st Cells, of []Families, unknown func(error)) error {
	ask := st.Features().CheckReadable
	if ask == nil {
		return nil
	}
	err := askReadable(ctx, ask, of, startTimeout)
	if err != nil && !errors.Is(err, ErrDenied) {
		unknown(fmt.Errorf("with rights on some columns only, answers would be short: %w", err))
		return nil
	}
	return err
}

func askReadable(ctx context.Context, ask func(context.Context, []Families) error, of []Families, within time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no answer within %v", within))
	defer cancel()
	return ask(ctx, of)
}

// ReadCheck is CheckReadable for servers: they start while there is no answer, and would serve short answers for as
// long as they run. So they go on asking.
type ReadCheck struct {
	Store Cells
	Of    []Families
	// Again is after how long Await first asks again; 0 is a default.
	Again time.Duration
	Log   *slog.Logger

	untold bool // at the start, and another attempt may be told
}

// Times between questions double from the first to the last. A question of the background may take as long as
// an attempt at each of several servers of Kerberos.
const (
	firstAgain   = 5 * time.Second
	lastAgain    = time.Minute
	againTimeout = 30 * time.Second
	untoldEvery  = time.Hour // how often the log says that there still is no answer
)

const untoldMessage = "whether all tables may be read is not known"

// AtStart returns an ErrDenied unless all may be read, or that could not be found out, which is logged.
func (c *ReadCheck) AtStart(ctx context.Context) error {
	return CheckReadable(ctx, c.Store, c.Of, func(err error) {
		c.untold = !errors.Is(err, errors.ErrUnsupported)
		c.Log.Warn(untoldMessage, "err", err, "asked again", c.untold)
	})
}

// Await goes on asking what AtStart was not told, until there is an answer, until the servers turn out not to know
// the question, or until ctx ends. It returns an ErrDenied or nil.
func (c *ReadCheck) Await(ctx context.Context) error {
	ask := c.Store.Features().CheckReadable
	if ask == nil || !c.untold {
		return nil
	}

	logged := time.Now()
	pause := cmp.Or(c.Again, firstAgain)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}

		err := askReadable(ctx, ask, c.Of, againTimeout)
		switch {
		case err == nil:
			c.Log.Info("all tables may be read")
			return nil
		case errors.Is(err, ErrDenied):
			return err
		case ctx.Err() != nil: // the process ends
			return nil
		case errors.Is(err, errors.ErrUnsupported):
			c.Log.Warn(untoldMessage, "err", err, "asked again", false)
			return nil
		case time.Since(logged) >= untoldEvery:
			c.Log.Warn(untoldMessage, "err", err, "asked again", true)
			logged = time.Now()
		}
		pause = min(2*pause, lastAgain)
		timer.Reset(pause)
	}
}
