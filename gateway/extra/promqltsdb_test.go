package extra_test

import (
	"encoding/json"
	"flag"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	prom "github.com/prometheus/prometheus/promql"
)

var promTSDB = flag.Bool("tsdb", false, "ask Prometheus' own storage in place of a list of the same samples")

// tsdbPeer is Prometheus' own storage in a process of its own, integration/promtsdb, because it needs modules that the
// product does not.
type tsdbPeer struct {
	*testing.T
	in  io.WriteCloser
	ask *json.Encoder
	out *json.Decoder
}

// tsdbSeries is a series as the process reads and writes it.
type tsdbSeries struct {
	Labels map[string]string
	Times  []int64
	Bits   []uint64
}

// startTSDB builds the program, and loads the series of a peer.
func startTSDB(t *testing.T, series []promSeries) *tsdbPeer {
	t.Helper()
	program := filepath.Join(t.TempDir(), "promtsdb")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program,
		"-modfile=integration/setup/prometheus.mod", "-tags", "prometheus", "./integration/promtsdb")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	cmd := exec.Command(program, t.TempDir())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close() // which ends it
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	p := &tsdbPeer{t, in, json.NewEncoder(in), json.NewDecoder(out)}
	var all []tsdbSeries
	for _, s := range series {
		one := tsdbSeries{Labels: s.labels.Map()}
		for _, point := range s.points {
			one.Times, one.Bits = append(one.Times, point.T), append(one.Bits, math.Float64bits(point.F))
		}
		all = append(all, one)
	}
	if err := p.ask.Encode(all); err != nil {
		t.Fatal(err)
	}
	return p
}

// choose returns the series that match, with their points of these times.
func (p *tsdbPeer) choose(start, end int64, matchers []*labels.Matcher) (found []promSeries) {
	type matcher struct {
		Type        labels.MatchType
		Name, Value string
	}
	var all []matcher
	for _, m := range matchers {
		all = append(all, matcher{m.Type, m.Name, m.Value})
	}
	if err := p.ask.Encode(map[string]any{"Start": start, "End": end, "Matchers": all}); err != nil {
		p.Fatal(err)
	}
	var answer []tsdbSeries
	if err := p.out.Decode(&answer); err != nil {
		p.Fatal(err)
	}
	for _, s := range answer {
		one := promSeries{labels: labels.FromMap(s.Labels)}
		for i, t := range s.Times {
			one.points = append(one.points, prom.FPoint{T: t, F: math.Float64frombits(s.Bits[i])})
		}
		found = append(found, one)
	}
	return found
}
