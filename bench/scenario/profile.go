package scenario

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/report"
)

// profileSeconds is how long something is repeated to be profiled.
const profileSeconds = 4

// repeatable is something measured that can be done again.
type repeatable struct {
	server func(context.Context) (*peer.Server, error) // of ours, which does it
	run    func(ctx context.Context, server *peer.Server, round int) error
	end    func() // of a server that is started for this alone; nil is none
}

// profiler repeats something measured and finds out what its figure is made of.
type profiler func(context.Context) (report.Profile, error)

// keep remembers how the figure of a question to a side is profiled, as long as their group is measured.
func (s *stage) keep(figure, side string, q bench.Question) {
	if sides[side].system != "" { // no system of ours
		return
	}
	s.keepAs(figure, s.timed(repeatable{
		server: func(ctx context.Context) (*peer.Server, error) { return s.side(ctx, side) },
		run:    q.Ask,
	}))
}

// keepAs remembers how the figure of this name is profiled; see explain.
func (s *stage) keepAs(figure string, p profiler) {
	if s.profilers == nil {
		s.profilers = map[string]profiler{}
	}
	if p != nil {
		s.profilers[figure] = p
	}
}

// timed profiles the processor time of what is repeated.
func (s *stage) timed(again repeatable) profiler {
	return func(ctx context.Context) (report.Profile, error) { return s.profile(ctx, again, profileSeconds) }
}

// explain profiles what missed its aim, while its servers still run: the report
// shows by that what stands in the way.
func (s *stage) explain(ctx context.Context, g group) error {
	defer clear(s.profilers)
	for _, a := range s.cfg.Report.Aims {
		again, known := s.profilers[a.Figure]
		if a.Scale != g.scale || !g.has(a.Row) || a.Met() || !known {
			continue
		}
		delete(s.profilers, a.Figure) // several aims may be of one figure
		s.cfg.Progress.Sayf("profiling %s", a.Figure)
		p, err := again(ctx)
		if err != nil {
			return fmt.Errorf("profile of %s: %w", a.Figure, err)
		}

		p.Figure = a.Figure
		s.cfg.Report.AddProfile(p)
	}
	return nil
}

// profile repeats something for as long as a profile is taken.
func (s *stage) profile(ctx context.Context, again repeatable, seconds int) (p report.Profile, err error) {
	server, err := again.server(ctx)
	if err != nil {
		return p, err
	}
	if again.end != nil {
		defer again.end()
	}

	before, err := s.usedBy(server)
	if err != nil {
		return p, err
	}
	start := time.Now()
	if p.Functions, p.Runs, err = profiled(ctx, server, again.run, seconds); err != nil {
		return p, err
	}

	p.Took = time.Since(start) / time.Duration(p.Runs)
	after, err := s.usedBy(server)
	p.Processes = since(after, before)
	for _, shares := range [][]report.Share{p.Processes, p.Functions} {
		for i := range shares {
			shares[i].Took /= time.Duration(p.Runs)
		}
	}

	return p, err
}

// profiled runs something again and again until the profile is taken, and
// returns what all runs took of each function: the last may end after the
// profile.
func profiled(
	ctx context.Context, server *peer.Server, run func(context.Context, *peer.Server, int) error, seconds int,
) (all []report.Share, runs int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	taken := make(chan error, 1)
	start, whole := time.Now(), time.Duration(seconds)*time.Second
	go func() {
		var err error
		all, err = server.Profile(ctx, seconds)
		taken <- err
	}()

	for err == nil && time.Since(start) < whole {
		err = run(ctx, server, runs)
		runs++
	}
	if err != nil {
		cancel()
	}

	// The profile covers a part of the runs: what it shows is scaled up to all of them.
	longer := max(1, float64(time.Since(start))/float64(whole))
	if taking := <-taken; err == nil {
		err = taking
	}
	for i := range all {
		all[i].Took = time.Duration(float64(all[i].Took) * longer)
	}

	return all, runs, err
}

// usedBy is the processor time that the processes have used by now that share
// in an answer: our server, the region server if it is on HBase, and this
// process, which asks.
func (s *stage) usedBy(ours *peer.Server) ([]report.Share, error) {
	gateway, err1 := ours.Process.CPU()
	asking, err2 := ownCPU()
	all := []report.Share{{Name: "gateway", Took: gateway}, {Name: "asking", Took: asking}}
	if s.set == nil || !s.set.at.OnHBase() {
		return all, errors.Join(err1, err2)
	}
	regions, err3 := s.set.at.HBase().CPU()
	return append(all, report.Share{Name: "region server", Took: regions}), errors.Join(err1, err2, err3)
}

// ownCPU is the processor time that this process has used so far.
func ownCPU() (time.Duration, error) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}

// since is what was used between two looks.
func since(after, before []report.Share) []report.Share {
	for i := range after {
		after[i].Took -= before[i].Took
	}
	return after
}
