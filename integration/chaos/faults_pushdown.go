package chaos

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"downpour/integration/e2e"
)

// pushdown chooses a pushdown server.
func (w *world) pushdown() (p *e2e.Program, detail string) {
	s := w.site()
	i := w.rng.IntN(len(s.Pushdown))
	return s.Pushdown[i], fmt.Sprintf("%s, beside %s", s.Pushdown[i].Addr, s.cluster.RegionServerAddr(i))
}

func killPushdown(ctx context.Context, w *world) (string, error) {
	p, detail := w.pushdown()
	p.Process.Kill()
	w.pause(ctx, w.upTo(9*time.Second))
	return detail, p.Restart(ctx)
}

// upTo is a random time, at least a tenth of d.
func (w *world) upTo(d time.Duration) time.Duration {
	return d/10 + time.Duration(w.rng.Int64N(int64(d)))
}

// killAllPushdown leaves a site's gateway to itself.
func killAllPushdown(ctx context.Context, w *world) (string, error) {
	s := w.site()
	for _, p := range s.Pushdown {
		p.Process.Kill()
	}
	w.pause(ctx, w.upTo(5*time.Second))
	return s.Recording.Name, restart(ctx, s.Pushdown)
}

func restart(ctx context.Context, programs []*e2e.Program) (err error) {
	for _, p := range programs {
		err = errors.Join(err, p.Restart(ctx))
	}
	return err
}

func hangPushdown(ctx context.Context, w *world) (string, error) {
	p, detail := w.pushdown()
	if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
		return detail, err
	}
	w.pause(ctx, w.upTo(9*time.Second))
	return detail, p.Process.Signal(syscall.SIGCONT)
}

func drainPushdown(ctx context.Context, w *world) (string, error) {
	p, detail := w.pushdown()
	stop, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if err := p.Process.Stop(stop); err != nil {
		return detail, err
	}
	w.pause(ctx, 2*time.Second)
	return detail, p.Restart(ctx)
}
