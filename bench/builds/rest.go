package builds

import (
	"context"
	"errors"
	"time"

	"downpour/integration/e2e"
)

// Servers are at rest when they use less than a twentieth of a processor for a
// quarter of a second. They are not waited for without end: what they do then is
// a part of how they are.
const (
	restFor   = 250 * time.Millisecond
	restShare = 20
	restAfter = 30 * time.Second
)

var errBusy = errors.New("still busy")

// rest waits until both builds' processes, and HBase's, have nothing to do.
func (o *round) rest(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, restAfter)
	defer cancel()
	used, err := o.used()
	if err != nil {
		return err
	}

	// The first look comes at once and finds nothing used since.
	began := time.Now()
	err = e2e.Until(limited, restFor, func(context.Context) error {
		passed := time.Since(began)
		now, err := o.used()
		if err != nil {
			return err
		}
		quiet := passed >= restFor/2 && now-used < passed/restShare
		used, began = now, time.Now()
		if !quiet {
			return errBusy
		}
		return nil
	})
	if errors.Is(err, errBusy) && ctx.Err() == nil {
		o.cfg.Report.Note("%s: the servers did not come to rest within %s", o.scene.name, restAfter)
		return nil
	}
	return err
}

// used is the processor time of all that works for the builds.
func (o *round) used() (sum time.Duration, err error) {
	for _, s := range o.sides {
		one, err := s.processor()
		if err != nil {
			return 0, err
		}
		sum += one
	}
	if o.scene.hbase {
		theirs, err := o.hbase.CPU()
		return sum + theirs, err
	}
	return sum, nil
}
