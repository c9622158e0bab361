package live

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/progress"
	"downpour/bench/report"
	"downpour/bench/workload"
)

// TickConfig says how a tick is measured against asking again.
type TickConfig struct {
	// CPU is the processor time that all processes that answer have used.
	CPU func() (time.Duration, error)
	// Plans are followed at once. They are one query whose start differs by a
	// second, so each has an evaluator of its own; more of them separate a
	// tick's cost better from that of the puts.
	Plans int
	// Seconds that puts go on without and with followers, in each of Rounds; in
	// each the query is repeated Asks times.
	Seconds, Rounds, Asks int
	// Downsample of the query, whose aggregator is sum: 5m-avg.
	Downsample string
}

// Validate names the first field that is wrong.
func (c TickConfig) Validate() error {
	return bench.Positive(map[string]int{"plans": c.Plans, "seconds": c.Seconds, "rounds": c.Rounds, "asks": c.Asks})
}

// ticks is one measurement under way.
type ticks struct {
	TickConfig
	server  *peer.Server
	history *history
	figures [3]report.Figure // following, asking again: CPU, asking again
	deltas  int              // that came while following was measured
	behind  time.Duration    // until the followers held all that was put, at most
}

// measureTicks measures what it costs the server to keep an answer up to date for
// a second, with a second's points, and what it costs to ask again after each: in
// turn, by the processor time of its processes. It is an error if what the
// followers hold after a round does not become the answer.
func measureTicks(
	ctx context.Context, c TickConfig, server *peer.Server, h *history, store string, p *progress.Progress,
) (*ticks, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	t := &ticks{TickConfig: c, server: server, history: h}
	following := "a second of following, CPU, " + store
	for i, name := range []string{
		following, "asking again, CPU, " + store, "asking again, first to last byte, " + store,
	} {
		t.figures[i] = report.Figure{Name: name, Of: following, Work: h.perSecond(), Unit: "points"}
	}

	for range c.Rounds {
		if err := t.round(ctx); err != nil {
			return nil, err
		}
		if err := t.askAgain(ctx); err != nil { // the followers are gone by now
			return nil, err
		}
		p.Add(1)
	}
	return t, nil
}

// round measures seconds without followers and with them.
func (t *ticks) round(ctx context.Context) error {
	idle, err := t.used(func() error { return t.history.run(ctx, t.Seconds) })
	if err != nil {
		return err
	}
	f, err := t.subscribe(ctx)
	if err != nil {
		return err
	}
	defer f.close()

	// Work that is done once must not be measured, such as that at the first new point
	// of each series. Within Step seconds every series has one.
	if err := t.history.run(ctx, t.history.data.Step+2); err != nil {
		return err
	}
	before := f.messages()
	busy, err := t.used(func() error { return t.history.run(ctx, t.Seconds) })
	if err != nil {
		return err
	}

	moved := f.messages() - before
	t.deltas += moved
	quiet := time.Now()
	if err := t.agree(ctx, f); err != nil {
		return err
	}

	t.behind = max(t.behind, time.Since(quiet))
	// A round does not count if the cost is lost in the noise, or if nothing was followed.
	if busy > idle && moved > 0 {
		t.add(0, (busy-idle)/time.Duration(t.Seconds*t.Plans))
	}
	return nil
}

func (t *ticks) add(figure int, took time.Duration) {
	t.figures[figure].Runs = append(t.figures[figure].Runs, took)
}

// used calls meanwhile, and returns the processor time that the server uses until it
// returns.
func (t *ticks) used(meanwhile func() error) (time.Duration, error) {
	before, err := t.CPU()
	if err != nil {
		return 0, err
	}
	if err := meanwhile(); err != nil {
		return 0, err
	}
	after, err := t.CPU()
	return after - before, err
}

// askAgain asks the query after each second's points. The medians of processor time and
// of response time become one run each of the figures 1 and 2.
func (t *ticks) askAgain(ctx context.Context) error {
	var cpu, whole report.Figure
	for i := range t.Asks {
		if err := t.history.run(ctx, 1); err != nil {
			return err
		}
		began := time.Now()
		used, err := t.used(func() error { return t.server.Drain(ctx, t.fresh(i%t.Plans)) })
		if err != nil {
			return err
		}
		cpu.Runs, whole.Runs = append(cpu.Runs, used), append(whole.Runs, time.Since(began))
	}

	t.add(1, cpu.Median())
	t.add(2, whole.Median())
	return nil
}

// start is where the query of a plan begins: the data set's hours ago, each
// plan's another second.
func (t *ticks) start(plan int) string {
	return fmt.Sprintf("%ds-ago", t.history.data.Hours*3600-plan)
}

// fresh asks the query of a plan from scratch.
func (t *ticks) fresh(plan int) workload.Query {
	return workload.Query{Path: fmt.Sprintf("/api/query?arrays=true&start=%s&m=%s",
		t.start(plan), url.QueryEscape("sum:"+t.Downsample+":"+t.history.data.Metric()))}
}

// subscribe subscribes to all plans.
func (t *ticks) subscribe(ctx context.Context) (*subscriptions, error) {
	s, err := dial(ctx, t.server, 0, reading)
	if err != nil {
		return nil, err
	}
	var queries []string
	for plan := range t.Plans {
		queries = append(queries,
			fmt.Sprintf(`{"start":%q,"queries":[{"metric":%q,"aggregator":"sum","downsample":%q}]}`,
				t.start(plan), t.history.data.Metric(), t.Downsample))
	}
	return subscribeAll(ctx, s, queries)
}

// agreeWithin is how long followers may take to hold what was put: much longer
// than they usually do, for a machine may have more to do.
const agreeWithin = 3 * time.Minute

// agree waits until every plan's newest point is that of the same query asked
// from scratch. Nothing is put in the meantime.
func (t *ticks) agree(ctx context.Context, f *subscriptions) error {
	ctx, cancel := context.WithTimeout(ctx, agreeWithin)
	defer cancel()
	if err := t.history.durable(ctx); err != nil {
		return err
	}
	for plan := range t.Plans {
		text, err := t.server.Ask(ctx, t.fresh(plan))
		if err != nil {
			return err
		}
		want, err := lastPoint(text)
		if err != nil {
			return err
		}

		if err := f.until(ctx, plan, func(n newest) bool { return n == want }); err != nil {
			return fmt.Errorf("asked anew it is %v: %w", want, err)
		}
	}

	return nil
}

// lastPoint returns the newest point of an answer of one group.
func lastPoint(answer []byte) (n newest, err error) {
	var results []points
	if err := json.Unmarshal(answer, &results); err != nil {
		return n, err
	}
	if len(results) != 1 || len(results[0].DPS) == 0 {
		return n, fmt.Errorf("%d groups, want 1 with points: %.300s", len(results), answer)
	}
	return point(results[0].DPS[len(results[0].DPS)-1])
}

// aim is how many times cheaper than asking again it is to be.
func (t *ticks) aim(store string) report.Aim {
	want := 50.0
	if store == HBase {
		want = 5
	}
	tick, again := t.figures[0], t.figures[1]
	a := report.Aim{
		Row:     "tick",
		Scale:   "1x",
		What:    fmt.Sprintf("a tick with %d new points, CPU, %s", tick.Work, store),
		Against: "asking the same again",
		AtLeast: true,
		Want:    want,
		Got:     again.Over(tick),
		Ours:    report.MS(tick.Median()),
		Theirs:  report.MS(again.Median()),
	}
	if len(tick.Runs) == 0 {
		a.Missing = fmt.Sprintf("in %d rounds no tick could be told from the puts: the machine is too busy, "+
			"or the rounds are too short", t.Rounds)
	}
	return a
}
