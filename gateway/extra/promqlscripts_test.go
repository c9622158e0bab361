package extra_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	prom "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/extra/prometheus/promql"
)

// scriptChars are what labels of the scripts have and OpenTSDB allows by a setting alone.
const scriptChars = " +:|=~!@#$%^&*(){}[]<>,;?'\"\\"

// Every expression of Prometheus' own test scripts has the bits that Prometheus' engine has over a list of the same
// points. Each script is moved to a time of its own, because the tables do not hold 1970. What has no place in them
// is left out on both sides, and counted by class: native histograms, stale markers, NaN and infinite samples, samples
// with start times, names beyond ISO-8859-1; a series without labels gets one.
func TestPromQL_scripts(t *testing.T) {
	t.Parallel()
	b := open(t, func(cfg *gateway.Config) { cfg.AllowSpecialChars = scriptChars })
	s := &scripts{bench: b, left: map[string]int{}, shift: promStart}
	for _, file := range promScripts(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s.run(filepath.Base(file), strings.Split(string(text), "\n"))
	}
	t.Logf("%d expressions: %d have series, %d fail; for %d Prometheus has several answers; left out: %v",
		s.asked, s.answered, s.failed, s.uncertain, s.left)
	if s.answered < 1000 || s.uncertain > 20 {
		t.Errorf("%d expressions have series, want 1,000 at least; %d have several answers, want 20 at most",
			s.answered, s.uncertain)
	}
}

// promScripts returns the scripts, which are in Prometheus' module.
func promScripts(t *testing.T) []string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/prometheus/prometheus").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "promql/promqltest/testdata/*.test"))
	if err != nil || len(files) < 20 {
		t.Fatalf("found %d scripts, want 20 at least: %v", len(files), err)
	}
	return files
}

// scripts runs scripts on a gateway and the peer.
type scripts struct {
	*bench
	peer  *promPeer
	shift int64 // ms, of the present script since its last clear
	left  map[string]int

	asked, answered, failed, uncertain int
}

var (
	loadLine    = regexp.MustCompile(`^load(_with_nhcb)?\s+(\S+)$`)
	instantLine = regexp.MustCompile(`^eval(?:_\w+)?\s+instant\s+(?:at\s+(\S+)\s+)?(.+)$`)
	rangeLine   = regexp.MustCompile(`^eval(?:_\w+)?\s+range\s+from\s+(\S+)\s+to\s+(\S+)\s+step\s+(\S+)\s+(.+)$`)
)

func (s *scripts) run(name string, lines []string) {
	s.clear()
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if m := loadLine.FindStringSubmatch(line); m != nil {
			var block []string
			for i+1 < len(lines) && lines[i+1] != "" && (lines[i+1][0] == ' ' || lines[i+1][0] == '\t') {
				i++
				block = append(block, strings.TrimSpace(lines[i]))
			}
			s.load(scriptTime(s.T, m[2]), block)
			continue
		}
		switch m, r := instantLine.FindStringSubmatch(line), rangeLine.FindStringSubmatch(line); {
		case line == "clear":
			s.clear()
		case r != nil:
			s.eval(fmt.Sprintf("%s:%d", name, i+1), promQuestion{text: r[4], start: s.shift + scriptTime(s.T, r[1]),
				end: s.shift + scriptTime(s.T, r[2]), step: scriptTime(s.T, r[3])})
		case m != nil:
			at := s.shift
			if m[1] != "" {
				at += scriptTime(s.T, m[1])
			}
			s.eval(fmt.Sprintf("%s:%d", name, i+1), promQuestion{text: m[2], start: at, end: at})
		}
	}
}

// clear begins a time without points.
func (s *scripts) clear() {
	s.peer = newPromPeer()
	s.shift += (40 * 24 * time.Hour).Milliseconds()
}

// scriptTime is a duration in ms.
func scriptTime(t *testing.T, text string) int64 {
	t.Helper()
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return int64(n * 1000)
	}
	d, err := promql.ParseDuration(text)
	if err != nil {
		t.Fatalf("time %q: %v", text, err)
	}
	return d.Milliseconds()
}

// load loads series.
func (s *scripts) load(step int64, block []string) {
	p := parser.NewParser(promql.ParserOptions)
	var all []promSeries
	for _, line := range block {
		if line == "" || line[0] == '#' {
			continue
		}
		l, values, err := p.ParseSeriesDesc(line)
		if err != nil {
			s.left["series with start times"]++
			continue
		}
		if what := notStorable(l); what != "" {
			s.left[what]++
			continue
		}
		if l.Len() == 1 {
			l = labels.NewBuilder(l).Set("tag", "1").Labels()
		}
		all = append(all, promSeries{l, s.points(values, step)})
	}
	for _, series := range all {
		s.peer.add(series.labels, series.points)
	}
	promPut(s.bench, all)
}

// notStorable says why a series cannot be stored, "" if it can.
func notStorable(l labels.Labels) (what string) {
	if l.Get(model.MetricNameLabel) == "" {
		return "series without a name"
	}
	l.Range(func(l labels.Label) {
		for _, text := range []string{l.Name, l.Value} {
			if _, err := encoding.AppendName(nil, text); err != nil {
				what = "names beyond ISO-8859-1"
			}
		}
	})
	return what
}

func (s *scripts) points(values []parser.SequenceValue, step int64) (points []prom.FPoint) {
	for i, v := range values {
		switch {
		case v.Omitted:
		case v.Histogram != nil:
			s.left["native histograms"]++
		case math.IsNaN(v.Value):
			s.left["NaN and stale samples"]++
		case math.IsInf(v.Value, 0):
			s.left["infinite samples"]++
		default:
			points = append(points, prom.FPoint{T: s.shift + int64(i)*step, F: v.Value})
		}
	}
	return points
}

// eval compares the answers to a question.
func (s *scripts) eval(where string, q promQuestion) {
	want := s.peer.ask(s.Context(), q)
	s.asked++
	switch {
	case want.failed:
		s.failed++
	case len(want.series) > 0:
		s.answered++
	}
	if d := askGateway(s.bench, q).differs(want); d != "" {
		if s.peer.uncertain(s.Context(), q, want) {
			s.uncertain++
			return
		}
		s.Errorf("%s: %s: %s", where, q, d)
	}
}
