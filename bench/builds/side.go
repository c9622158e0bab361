package builds

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/place"
	"downpour/bench/workload"
	"downpour/integration/e2e"
)

// side is one build in one round: its storage, and its gateway while it runs.
type side struct {
	build  Build
	scene  scene
	at     *place.Place
	server *peer.Server
}

// caches are the names that the setting of the result cache has had, the newest first. A
// build refuses a setting that it does not know.
var caches = []string{"DOWNPOUR_RESULT_CACHE", "DOWNPOUR_SUMMARIES"}

// withoutCache returns the setting that turns off the result cache of a build.
func (b Build) withoutCache(ctx context.Context) (map[string]string, error) {
	status, out, err := e2e.Run(ctx, "./gateway/cmd/gateway", e2e.ProgramOptions{
		Path: b.Gateway,
		Args: []string{"-print-config"},
		Env:  b.Env,
	})
	if err == nil && status != 0 {
		err = fmt.Errorf("status %d: %s", status, out)
	}
	if err != nil {
		return nil, fmt.Errorf("settings of build %s: %w", b.Name, err)
	}

	for _, name := range caches {
		if slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool {
			return strings.HasPrefix(line, name+"=")
		}) {
			return map[string]string{name: "off"}, nil
		}
	}
	return nil, fmt.Errorf("settings of build %s: it knows none of %s, so its rows cannot be read again",
		b.Name, strings.Join(caches, ", "))
}

// phase is a part of a round with servers of its own.
type phase struct {
	uncached bool // the result cache is off, so every row is read
	pushdown bool // pushdown servers read the rows
}

// start starts the build's servers over its storage.
func (s *side) start(ctx context.Context, p phase) (err error) {
	one := place.Side{
		Name:     s.build.Name,
		Env:      map[string]string{},
		Pushed:   p.pushdown,
		Gateway:  s.build.Gateway,
		Pushdown: s.build.Pushdown,
	}
	if p.uncached {
		if one.PushdownEnv, err = s.build.withoutCache(ctx); err != nil {
			return err
		}
	}

	// A build's own settings win over the scene's, but none turns the cache on again.
	maps.Copy(one.Env, s.scene.env)
	maps.Copy(one.Env, s.build.Env)
	maps.Copy(one.Env, one.PushdownEnv)
	s.server, err = s.at.Server(ctx, one)
	return err
}

// processes returns the processes of the build that run.
func (s *side) processes() []*e2e.Process { return s.at.Processes(s.build.Name) }

// processorTime returns the processor time that the build's processes have used so far.
func (s *side) processorTime() (sum time.Duration, err error) {
	for _, p := range s.processes() {
		used, err := p.CPU()
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// peak returns the sum of the peaks of memory of the build's processes.
func (s *side) peak() (sample, error) {
	sum := int64(0)
	for _, p := range s.processes() {
		m, err := p.Memory()
		if err != nil {
			return sample{}, err
		}
		sum += m.Peak
	}
	return sample{amount: float64(sum)}, nil
}

// timed measures do, by the clock and by the processor time of the build. do returns the
// time that counts, or 0 for the time until it returns.
func (s *side) timed(do func() (time.Duration, error)) (sample, error) {
	before, err := s.processorTime()
	if err != nil {
		return sample{}, err
	}

	began := time.Now()
	took, err := do()
	if err != nil {
		return sample{}, err
	}
	if took == 0 {
		took = time.Since(began)
	}

	after, err := s.processorTime()
	return sample{amount: took.Seconds(), processor: after - before}, err
}

// put puts a data set to the gateway.
func (s *side) put(
	ctx context.Context, d workload.Devops, connections int, p bench.Payload, format workload.Format,
) (sample, error) {
	return s.timed(func() (time.Duration, error) {
		return bench.SendConfig{Server: s.server, Data: d, Format: format, Connections: connections}.Send(ctx, p)
	})
}

// ask asks a question count times, beginning with its variant first. The sample is the
// mean of them.
func (s *side) ask(ctx context.Context, q question, d workload.Devops, first, count int) (sample, error) {
	var asked [][]workload.Query
	for i := range count {
		asked = append(asked, q.of(d, first+i))
	}

	one, err := s.timed(func() (time.Duration, error) {
		took := time.Duration(0)
		for i, queries := range asked {
			if q.living {
				if err := e2e.Put(ctx, s.server.PutURL, []e2e.Point{lastHourPoint(d, first+i)}); err != nil {
					return 0, err
				}
			}

			began := time.Now()
			for _, one := range queries {
				if _, err := s.server.Copy(ctx, one, q.accept, io.Discard); err != nil {
					return 0, err
				}
			}
			took += time.Since(began)
		}
		return took, nil
	})

	one.amount /= float64(count)
	one.processor /= time.Duration(count)
	return one, err
}

// lastHourPoint returns the i-th of the points that are put in addition to the data: to the last hour
// of a series that is there, between two of its points.
func lastHourPoint(d workload.Devops, i int) e2e.Point {
	tags := map[string]string{}
	for _, t := range d.Host(i % d.Hosts) {
		tags[t.K] = t.V
	}
	at := d.End() - 3600 + int64(i%d.PerHour()*d.Step) + 1
	return e2e.Point{Metric: d.Metric(), Timestamp: at, Value: json.RawMessage("1"), Tags: tags}
}
