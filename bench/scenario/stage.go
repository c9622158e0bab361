package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/place"
	"downpour/bench/report"
	"downpour/bench/workload"
)

// stage is what runs at the moment: a group, and the data set that it is about.
type stage struct {
	cfg   *Config
	maker *place.Maker
	group group
	set   *set // nil if none is there
	// hbaseBytes is what a point in compacted rows takes on disk; 0 is unknown.
	hbaseBytes float64
	sent       atomic.Int64 // points that were put while others were asked
	kept
	// profilers repeats what was measured of the group that runs, by the names of figures.
	profilers map[string]profiler
}

// kept is what steps of a group keep for later ones.
type kept struct {
	figures map[string]report.Figure // by their names
	bytes   map[string]float64       // that a point takes after row compaction, by who has done it
	answer  []byte                   // see keepAnswer
	lightly int64                    // points that the step of this name has put
}

func newKept() kept { return kept{figures: map[string]report.Figure{}, bytes: map[string]float64{}} }

func newStage(c *Config) *stage {
	return &stage{cfg: c, kept: newKept(), maker: &place.Maker{
		Name: "speed", HBase: c.HBase, Open: c.Open, Report: c.Report, Progress: c.Progress,
	}}
}

// close ends all that runs.
func (s *stage) close() {
	s.dropSet()
	s.maker.Close()
}

// text fills in what a text of reports says of the data set and the settings.
func (s *stage) text(text string, more ...string) string {
	c := s.cfg
	facts := []string{
		"{scale}", s.group.scale, "{days}", fmt.Sprint(c.LivingDays), "{viewers}", fmt.Sprint(c.Viewers),
		"{points/s}", report.Thousands(float64(c.ViewersPoints)),
		"{hbase pods}", report.Thousands(float64(c.HBasePods)),
		"{pod points}", fmt.Sprint(podHours * podPerHour),
	}
	if s.set != nil {
		facts = append(facts, "{set}", s.set.name, "{rows}", s.set.rows, "{hosts}", fmt.Sprint(s.set.data.Hosts),
			"{hours}", fmt.Sprint(s.set.data.Hours), "{series}", report.Thousands(float64(s.set.put().Series())),
			"{rows/s}", fmt.Sprint(s.compactRate()), "{histograms}", fmt.Sprint(histograms(s.set)),
			"{pod rows}", s.set.rowsOfPods())
	}
	return strings.NewReplacer(append(facts, more...)...).Replace(text)
}

// measure runs steps in turn and adds their figures to the report, in the place of
// those with the same name.
func (s *stage) measure(ctx context.Context, steps []bench.Step, warm, rounds int) error {
	s.cfg.Progress.Sayf("measuring %s", s.group)
	figures, err := bench.Interleave(ctx, steps, warm, rounds, nil)
	if err != nil {
		return err
	}

	all := &s.cfg.Report.Figures
	for _, f := range figures {
		s.figures[f.Name] = f
		*all = slices.DeleteFunc(*all, func(old report.Figure) bool { return old.Name == f.Name })
	}
	*all = append(*all, figures...)
	return nil
}

// replay asks as bench.Replay does, and adds the times to the report.
func (s *stage) replay(ctx context.Context, c bench.ReplayConfig) (report.Latency, error) {
	l, err := bench.Replay(ctx, c)
	if err != nil {
		return l, err
	}
	s.cfg.Report.Latencies = append(s.cfg.Report.Latencies, l)
	return l, nil
}

// agree is the step that compares the answers of sides to some queries with that of the first side.
func agree(of func(s *stage) []workload.Query, names ...string) step {
	return do(func(ctx context.Context, s *stage) error {
		if err := s.use(ctx); err != nil {
			return err
		}
		servers, err := s.sides(ctx, names)
		if err != nil {
			return err
		}
		s.cfg.Progress.Sayf("comparing answers of %s", s.group)
		return bench.Question{Of: func(int) []workload.Query { return of(s) }}.Agree(ctx, 1, servers...)
	})
}

// allOf asks for all of the data set.
func allOf(m string) func(*stage) []workload.Query {
	return func(s *stage) []workload.Query { return []workload.Query{s.set.whole(m)} }
}

// sides returns the servers of some sides.
func (s *stage) sides(ctx context.Context, names []string) (all []*peer.Server, err error) {
	for _, name := range names {
		server, err := s.side(ctx, name)
		if err != nil {
			return nil, err
		}
		all = append(all, server)
	}
	return all, nil
}

func missingPeer(name string, err error) report.Peer {
	return report.Peer{Name: name, Missing: err.Error()}
}
