package scenario

import (
	"context"
	"fmt"
	"slices"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/workload"
	"downpour/encoding"
)

// asks is the step that asks sides questions in turn, after their answers were found equal.
type asks struct {
	sides     []string // times are multiples of those of the first one
	floors    []string // what is run in turn with them, see floors.go
	questions []question
	// figures is what the names of figures begin with, and what what the aims say of each question.
	figures, what string
	// slack is by how many seconds at most the times of a question vary, and unit of what they are multiples; 0 is an
	// hour and 1.
	slack, unit int64
	// warm rounds come first; verify is how many rounds' answers are compared. 0 is 1 and 2; see none.
	warm, verify int
	// atMost and times change the number of rounds: at most so many, 0 for any, and so many times as many.
	atMost, times int
	// every is a wait before the last side is asked, which does not count.
	every time.Duration
	anew  anew
}

// none is no warm round, or no answer that is compared.
const none = -1

// hour is the default of slack: times vary inside the first and the last hour, so that all rounds read the same rows.
const hour = 3600

// or returns a setting, or else its default.
func or[T int | int64](got, otherwise T) T {
	if got == 0 {
		return otherwise
	}
	return max(got, 0)
}

// anew says whether our servers are restarted before each ask.
type anew int

const (
	goesOn    anew = iota
	fresh          // restarted, and measured from then on
	withStart      // measured with the start
)

// question is what sides are asked in each round.
type question struct {
	m string // over the whole data set, with %s for the metric and other times in each round
	// Instead of m: query is another query whose times vary, and of returns for so many rounds what is asked in each.
	query func(t *set) workload.Query
	of    func(s *stage, rounds int) func(round int) []workload.Query
	// name is that of its figures, and what that of its aims, unless they are those of asks.
	name, what string
	points     func(t *set) int // that it reads; nil is all
	aims       []aim
}

// asked returns the question as it is asked in so many rounds.
func (q question) asked(s *stage, a asks, rounds int) (asked bench.Question, what string) {
	t := s.set
	if q.of != nil {
		of := q.of(s, rounds)
		asked = bench.Question{Name: a.what, Unit: "queries", Work: int64(len(of(0))), Of: of}
		if q.points != nil {
			asked.Unit, asked.Work = "points", int64(q.points(t))
		}
	} else {
		query := t.whole(q.m)
		if q.query != nil {
			query = q.query(t)
		}
		points := t.put().Points()
		if q.points != nil {
			points = q.points(t)
		}
		asked = bench.Question{Name: bench.Label(query), Unit: "points", Work: int64(points),
			Of: bench.Varied(query, rounds, or(a.slack, hour), or(a.unit, 1), s.cfg.Data.Seed)}
	}

	facts := []string{
		"{m}", shortName(q.m), "{M}", asked.Name, "{panels}", fmt.Sprint(asked.Work),
		"{window}", fmt.Sprint(t.window(s.cfg)),
	}
	if q.name != "" {
		asked.Name = q.name
	}
	asked.Name = s.text(a.figures+asked.Name, facts...)
	what = q.what
	if what == "" {
		what = a.what
	}
	return asked, s.text(what, facts...)
}

// rounds is the number of rounds.
func (a asks) rounds(s *stage) int {
	n := s.cfg.roundsAt(s.group.scale) * max(a.times, 1)
	if a.atMost > 0 {
		n = min(n, a.atMost)
	}
	return n
}

// heated is how many rounds are warm and how many are verified. Where rounds are long, comparing the answers warms both
// sides instead of several rounds.
func (a asks) heated(scale string) (warm, verify int) {
	warm, verify = or(a.warm, 1), or(a.verify, 2)
	if scale != Scales[0] && warm > 1 {
		return 0, 1
	}
	return warm, verify
}

// wants reports whether an aim of the step is wanted.
func (a asks) wants(g group) bool {
	for _, q := range a.questions {
		if q.wants(g) {
			return true
		}
	}
	return false
}

func (q question) wants(g group) bool {
	for _, one := range q.aims {
		if g.has(one.row) {
			return true
		}
	}
	return len(q.aims) == 0
}

func (a asks) run(ctx context.Context, s *stage) error {
	if !a.wants(s.group) {
		return nil
	}
	if err := s.use(ctx); err != nil {
		return err
	}
	servers, err := s.sides(ctx, a.sides)
	if err != nil {
		return err
	}

	rounds := a.rounds(s)
	warm, verify := a.heated(s.group.scale)
	var steps []bench.Step
	var judged []func()
	s.cfg.Progress.Sayf("comparing answers of %s", s.group)
	for _, q := range a.questions {
		if !q.wants(s.group) {
			continue
		}
		asked, what := q.asked(s, a, rounds+max(warm, verify))
		if err := asked.Agree(ctx, verify, servers...); err != nil {
			return err
		}
		of := asked.FigureOf(a.called(0))
		if len(a.sides) == 1 && len(steps) > 0 {
			of = steps[0].Name // a multiple of the first question
		}
		for i, name := range a.sides {
			steps = append(steps, a.step(s, asked, servers[i], i, of))
			if a.anew == goesOn {
				s.keep(asked.FigureOf(a.called(i)), name, asked)
			}
		}
		for _, one := range q.aims {
			judged = append(judged, func() {
				by := slices.Index(a.sides, one.of)
				if one.of == "" {
					by = len(a.sides) - 1
				}
				text := s.text(what, "{side}", reported(a.sides[by]))
				s.judge(one, text, s.figures[asked.FigureOf(a.called(by))], s.figures[a.figure(s, asked, one.than)])
			})
		}
	}
	for _, name := range a.floors {
		steps = append(steps, floors[name](s, s.text(a.figures)))
	}

	if err := s.measure(ctx, steps, warm, rounds); err != nil {
		return err
	}
	for _, judge := range judged {
		judge()
	}
	return nil
}

// figure is the name of the figure that a question's is compared with: of a side, of a floor, or of another question.
func (a asks) figure(s *stage, q bench.Question, than string) string {
	if i := slices.Index(a.sides, than); i >= 0 {
		return q.FigureOf(a.called(i))
	}
	if slices.Contains(a.floors, than) {
		return floors[than](s, s.text(a.figures)).Name
	}
	return s.text(than)
}

// called is the name of the i-th side in figures, empty if it is the only one.
func (a asks) called(i int) string {
	if len(a.sides) == 1 {
		return ""
	}
	return reported(a.sides[i])
}

// step is the question to the i-th side.
func (a asks) step(s *stage, q bench.Question, server *peer.Server, i int, of string) bench.Step {
	name := a.sides[i]
	one := q.Step(server, a.called(i), of)
	switch {
	case a.anew != goesOn && sides[name].system == "":
		one.Run = func(ctx context.Context, round int) (time.Duration, error) {
			if err := s.set.of(name).Stop(name); err != nil {
				return 0, err
			}
			began := time.Now()
			server, err := s.side(ctx, name)
			if err != nil {
				return 0, err
			}
			if a.anew == fresh {
				began = time.Now()
			}
			err = q.Ask(ctx, server, round)
			return time.Since(began), err
		}
	case a.every > 0 && i == len(a.sides)-1:
		one.Run = func(ctx context.Context, round int) (time.Duration, error) {
			if !bench.Until(ctx, time.Now().Add(a.every)) {
				return 0, ctx.Err()
			}
			began := time.Now()
			err := q.Ask(ctx, server, round)
			return time.Since(began), err
		}
	}
	return one
}

// shortName is a query without its metric.
func shortName(m string) string {
	var out []byte
	for i := 0; i < len(m); i++ {
		if m[i] == '%' && i+1 < len(m) {
			out = out[:len(out)-1] // the colon before it
			i++
			continue
		}
		out = append(out, m[i])
	}
	return string(out)
}

// batches is a question of several queries a round.
func batches(of func(s *stage, i int) []workload.Query) func(*stage, int) func(int) []workload.Query {
	return func(s *stage, rounds int) func(int) []workload.Query {
		all := make([][]workload.Query, rounds)
		for i := range all {
			all[i] = of(s, i)
		}
		return bench.Batches(all)
	}
}

// oneHost asks for one host, another one each round.
func oneHost(s *stage, i int) []workload.Query {
	d := s.set.data
	return []workload.Query{d.OneHost((i*389 + 17) % d.Hosts)} // a prime: a host comes again after all others
}

// onePod asks for one pod, another one each round.
func onePod(s *stage, i int) []workload.Query {
	p := s.set.pods
	return []workload.Query{p.OnePod((i*7919 + 4711) % p.Count)}
}

// movingDashboard asks for a dashboard, its window moved by five minutes inside hours that nobody writes to any more.
func movingDashboard(s *stage, i int) []workload.Query {
	return s.set.data.Dashboard(int64(i%12)*300, s.set.window(s.cfg), 11)
}

// window is the hours that a dashboard shows: no more points than the data set of scale 1x has, or OpenTSDB takes all
// day.
func (t *set) window(c *Config) int64 {
	return max(int64(c.Data.Hours)*int64(c.Data.Hosts)/int64(max(t.data.Hosts, 1))-1, 1)
}

// panel asks for the sum of a data set that is written to, up to now.
func panel(s *stage, _ int) func(int) []workload.Query {
	d := s.set.data
	return func(int) []workload.Query {
		return []workload.Query{{Start: d.Start, End: time.Now().Unix(), M: "sum:5m-avg:" + d.Metric()}}
	}
}

// older asks for the panel's hours that are over.
func older(s *stage) []workload.Query {
	q := s.set.whole(sum)
	q.End = s.set.data.Start + int64(24*s.cfg.LivingDays)*encoding.RowSeconds - 1
	return []workload.Query{q}
}
