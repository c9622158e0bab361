package builds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/workload"
	"downpour/integration/e2e"
)

// side is one build in one round: its storage, and its servers while they run.
type side struct {
	build Build
	scene scene
	// dir holds the embedded store, if there is one, and the log of the gateway. tables
	// are those on HBase.
	dir      string
	tables   e2e.Tables
	quorum   string
	beside   string // address of the region server
	server   *peer.Server
	pushdown *e2e.Program
}

// caches are the names that the setting of the result cache has had, the newest first. A
// build refuses a setting that it does not know.
var caches = []string{"DOWNPOUR_RESULT_CACHE", "DOWNPOUR_SUMMARIES"}

// withoutCache returns the setting that turns off the result cache of a build.
func (b Build) withoutCache(ctx context.Context) (map[string]string, error) {
	status, out, err := e2e.Run(ctx, "./gateway/cmd/gateway", e2e.ProgramOptions{Path: b.Gateway, Args: []string{"-print-config"}, Env: b.Env})
	if err == nil && status != 0 {
		err = fmt.Errorf("status %d: %s", status, out)
	}
	if err != nil {
		return nil, fmt.Errorf("settings of build %s: %w", b.Name, err)
	}

	for _, name := range caches {
		if slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool { return strings.HasPrefix(line, name+"=") }) {
			return map[string]string{name: "off"}, nil
		}
	}
	return nil, fmt.Errorf("settings of build %s: it knows none of %s, so its rows cannot be read again", b.Name, strings.Join(caches, ", "))
}

// phase is a part of a round with servers of its own.
type phase struct {
	uncached bool // the result cache is off, so every row is read
	pushdown bool // pushdown servers read the rows
}

// start starts the build's servers over its storage.
func (s *side) start(ctx context.Context, p phase) error {
	o := peer.Options{Program: s.build.Gateway, Name: s.build.Name, Dir: s.dir, Quorum: s.quorum, Tables: s.tables, Env: map[string]string{}}
	var off map[string]string
	if p.uncached {
		var err error
		if off, err = s.build.withoutCache(ctx); err != nil {
			return err
		}
	}

	// A build's own settings win over the scene's, but none turns the cache on again.
	maps.Copy(o.Env, s.scene.env)
	maps.Copy(o.Env, s.build.Env)
	maps.Copy(o.Env, off)
	if p.pushdown {
		if err := s.startPushdown(ctx, off); err != nil {
			return err
		}
		o.Env["DOWNPOUR_PUSHDOWN"] = s.pushdown.Addr
	}

	var err error
	s.server, err = peer.StartDownpour(ctx, o)
	return err
}

// startPushdown starts a pushdown server over the build's tables.
func (s *side) startPushdown(ctx context.Context, settings map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()

	env := map[string]string{
		"DOWNPOUR_STORE": "hbase:" + s.quorum, "DOWNPOUR_BESIDE": s.beside,
		"DOWNPOUR_TABLE_DATA": s.tables.Data, "DOWNPOUR_TABLE_UID": s.tables.UID,
		"DOWNPOUR_TABLE_META": s.tables.Meta, "DOWNPOUR_TABLE_TREE": s.tables.Tree,
	}

	maps.Copy(env, settings)
	var err error
	s.pushdown, err = e2e.StartPushdown(ctx, e2e.ProgramOptions{Path: s.build.Pushdown, Env: env})
	return err
}

// stop ends the servers and leaves the storage.
func (s *side) stop() error {
	err := s.server.Close()
	s.server = nil
	if s.pushdown != nil {
		err = errors.Join(err, s.pushdown.Close())
		s.pushdown = nil
	}
	return err
}

// processes returns the processes of the build that run.
func (s *side) processes() []*e2e.Process {
	all := []*e2e.Process{s.server.Process}
	if s.pushdown != nil {
		all = append(all, s.pushdown.Process)
	}
	return all
}

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
func (s *side) put(ctx context.Context, d workload.Devops, connections int, p bench.Payload, format workload.Format) (sample, error) {
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

// lastHourPoint returns the i-th of the points that are put beside the data: to the last hour
// of a series that is there, between two of its points.
func lastHourPoint(d workload.Devops, i int) e2e.Point {
	tags := map[string]string{}
	for _, t := range d.Host(i % d.Hosts) {
		tags[t.K] = t.V
	}
	at := d.End() - 3600 + int64(i%d.PerHour()*d.Step) + 1
	return e2e.Point{Metric: d.Metric(), Timestamp: at, Value: json.RawMessage("1"), Tags: tags}
}
