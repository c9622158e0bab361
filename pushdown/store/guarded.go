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

// startTimeout bounds the check at start: the process can start without an answer.
const startTimeout = 5 * time.Second

// CheckReadable checks a store that has Features.CheckReadable. Without an answer, unknown is
// called with the reason, and there is no error.
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

func askReadable(ctx context.Context, ask func(context.Context, []Families) error, of []Families,
	within time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no answer within %v", within))
	defer cancel()
	return ask(ctx, of)
}

// ReadCheck is CheckReadable for servers: they start without an answer, and could serve short
// answers for as long as they run. So they keep checking.
type ReadCheck struct {
	Store Cells
	Of    []Families
	// Again is the time until Await's first check; 0 is a default.
	Again time.Duration
	Log   *slog.Logger

	unknown bool // at start, and another attempt may succeed
}

// Times between questions double from the first to the last. A question of the background may take as long as
// an attempt at each of several servers of Kerberos.
const (
	firstAgain   = 5 * time.Second
	lastAgain    = time.Minute
	againTimeout = 30 * time.Second
	unknownEvery = time.Hour // how often the log repeats that there is no answer
)

const unknownMessage = "whether all tables may be read is not known"

// AtStart returns an ErrDenied unless all may be read, or there is no answer, which is logged.
func (c *ReadCheck) AtStart(ctx context.Context) error {
	return CheckReadable(ctx, c.Store, c.Of, func(err error) {
		c.unknown = !errors.Is(err, errors.ErrUnsupported)
		c.Log.Warn(unknownMessage, "err", err, "asked again", c.unknown)
	})
}

// Await repeats the check of AtStart if that had no answer, until there is one, until the servers
// turn out not to know the request, or until ctx ends. It returns an ErrDenied or nil.
func (c *ReadCheck) Await(ctx context.Context) error {
	ask := c.Store.Features().CheckReadable
	if ask == nil || !c.unknown {
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
			c.Log.Warn(unknownMessage, "err", err, "asked again", false)
			return nil
		case time.Since(logged) >= unknownEvery:
			c.Log.Warn(unknownMessage, "err", err, "asked again", true)
			logged = time.Now()
		}
		pause = min(2*pause, lastAgain)
		timer.Reset(pause)
	}
}
