package builds

import (
	"context"
	"errors"
	"time"

	"downpour/integration/e2e"
)

// Servers are at rest when, between two looks restLook apart, they use less than a
// twentieth of a processor (one part in restShare). The wait has an end: a build that is
// busy for longer than restTimeout is measured as it is.
const (
	restLook    = 250 * time.Millisecond
	restShare   = 20
	restTimeout = 30 * time.Second
)

// errBusy is returned by a look at servers that are not at rest.
var errBusy = errors.New("still busy")

// awaitIdle waits until the processes of both builds, and of HBase, have nothing to do.
func (o *round) awaitIdle(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, restTimeout)
	defer cancel()
	used, err := o.processorTime()
	if err != nil {
		return err
	}

	// The first look comes at once, when too little time has passed to judge.
	began := time.Now()
	err = e2e.Until(limited, restLook, func(context.Context) error {
		passed := time.Since(began)
		now, err := o.processorTime()
		if err != nil {
			return err
		}
		quiet := passed >= restLook/2 && now-used < passed/restShare
		used, began = now, time.Now()
		if !quiet {
			return errBusy
		}

		return nil
	})

	if errors.Is(err, errBusy) && ctx.Err() == nil {
		o.cfg.Report.Note("%s: the servers did not come to rest within %s", o.scene.name, restTimeout)
		return nil
	}
	return err
}

// processorTime returns the processor time of both builds and of HBase.
func (o *round) processorTime() (sum time.Duration, err error) {
	for _, s := range o.sides {
		one, err := s.processorTime()
		if err != nil {
			return 0, err
		}
		sum += one
	}

	if o.scene.hbase {
		theirs, err := o.maker.HBase.CPU()
		return sum + theirs, err
	}
	return sum, nil
}
