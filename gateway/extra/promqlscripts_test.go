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

	promnames "downpour/gateway/extra/prometheus/names"
	"downpour/gateway/extra/prometheus/promql"
)

// Every expression of Prometheus' own test scripts has the answer that its script expects, and the bits that
// Prometheus' engine has over a list of the same points. Each script is moved to a time of its own, because the tables
// do not hold 1970. What has no place in them is left out, and named by class: native histograms, stale markers, NaN
// and infinite samples, start times. Only what such series take part in, what depends on the time itself, and what
// Prometheus answers so by a flag alone, may have another answer than the script says: it is then that of the engine
// over the list.
func TestPromQL_scripts(t *testing.T) {
	t.Parallel()
	s := &scripts{bench: open(t, nil), left: map[string]int{}, excused: map[string]int{}, shift: promStart}
	for _, file := range promScripts(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s.run(filepath.Base(file), strings.Split(string(text), "\n"))
	}
	t.Logf("%d expressions: %d have series, %d fail, %d are as written; others by class: %v; for %d Prometheus has "+
		"several answers; left out: %v", s.asked, s.answered, s.failed, s.written, s.excused, s.uncertain, s.left)
	if s.answered < 1000 || s.written < 1200 || s.uncertain > 20 {
		t.Errorf("%d expressions have series, want 1,000 at least; %d are as written, want 1,200 at least; %d have "+
			"several answers, want 20 at most", s.answered, s.written, s.uncertain)
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

	without []leftOut      // since the last clear
	excused map[string]int // expressions by class

	asked, answered, failed, uncertain, written int
}

var (
	loadLine    = regexp.MustCompile(`^load(_with_nhcb)?\s+(\S+)$`)
	instantLine = regexp.MustCompile(`^eval(_\w+)?\s+instant\s+(?:at\s+(\S+)\s+)?(.+)$`)
	rangeLine   = regexp.MustCompile(`^eval(_\w+)?\s+range\s+from\s+(\S+)\s+to\s+(\S+)\s+step\s+(\S+)\s+(.+)$`)
)

func (s *scripts) run(name string, lines []string) {
	s.clear()
	for i := 0; i < len(lines); i++ {
		line, where := strings.TrimSpace(lines[i]), fmt.Sprintf("%s:%d", name, i+1)
		var block []string // what is indented below the line
		for i+1 < len(lines) && strings.TrimLeft(lines[i+1], " \t") != lines[i+1] {
			text := strings.TrimSpace(lines[i+1])
			if strings.HasPrefix(text, "eval ") {
				break
			}
			if i++; text != "" && text[0] != '#' {
				block = append(block, text)
			}
		}
		if m := loadLine.FindStringSubmatch(line); m != nil {
			s.load(scriptTime(s.T, m[2]), block, m[1] != "")
			continue
		}
		switch m, r := instantLine.FindStringSubmatch(line), rangeLine.FindStringSubmatch(line); {
		case line == "clear":
			s.clear()
		case r != nil:
			from, to, step := scriptTime(s.T, r[2]), scriptTime(s.T, r[3]), scriptTime(s.T, r[4])
			s.eval(where, promQuestion{text: r[5], start: s.shift + from, end: s.shift + to, step: step},
				s.readScripted(r[1], block, from, step))
		case m != nil:
			at := int64(0)
			if m[2] != "" {
				at = scriptTime(s.T, m[2])
			}
			s.eval(where, promQuestion{text: m[3], start: s.shift + at, end: s.shift + at},
				s.readScripted(m[1], block, at, 0))
		}
	}
}

// clear begins a time without points.
func (s *scripts) clear() {
	s.peer, s.without = newPromPeer(), nil
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

// load loads series, under the names by which remote write stores them. The scripts make native histograms of classic
// ones if histograms is set.
func (s *scripts) load(step int64, block []string, histograms bool) {
	p := parser.NewParser(promql.ParserOptions)
	var all []promSeries
	for _, line := range block {
		start, _, _ := strings.Cut(line, " ")
		if series, ok := strings.CutSuffix(start, "@st"); ok { // of the series in the next line
			if l, _, err := p.ParseSeriesDesc(series + " _"); err == nil {
				s.leave(l, "start times")
			}
			continue
		}
		l, values, err := p.ParseSeriesDesc(line)
		if err != nil {
			s.Fatalf("%s: %v", line, err)
		}
		name := l.Get(model.MetricNameLabel)
		if histograms {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if of, ok := strings.CutSuffix(name, suffix); ok {
					s.leave(labels.NewBuilder(l).Set(model.MetricNameLabel, of).Del("le").Labels(), "native histograms")
				}
			}
		}
		if name == "" {
			s.leave(l, "series without a name")
			continue
		}
		points := s.points(l, values, step)
		s.peer.add(l, points)
		all = append(all, promSeries{asStored(l), points})
	}
	promPut(s.bench, all)
}

// asStored are labels under the names by which remote write stores them.
func asStored(l labels.Labels) labels.Labels {
	b := labels.NewBuilder(labels.EmptyLabels())
	if l.Len() == 1 {
		b.Set(promnames.None, promnames.None)
	}
	l.Range(func(l labels.Label) {
		if l.Name != model.MetricNameLabel {
			l.Name = promnames.Stored(l.Name)
		}
		b.Set(l.Name, promnames.Stored(l.Value))
	})
	return b.Labels()
}

// leave notes that something of a series is left out.
func (s *scripts) leave(l labels.Labels, why string) {
	s.left[why]++
	s.without = append(s.without, leftOut{l, why})
}

func (s *scripts) points(l labels.Labels, values []parser.SequenceValue, step int64) (points []prom.FPoint) {
	for i, v := range values {
		switch {
		case v.Omitted:
		case v.Histogram != nil:
			s.leave(l, "native histograms")
		case math.IsNaN(v.Value):
			s.leave(l, "NaN and stale samples")
		case math.IsInf(v.Value, 0):
			s.leave(l, "infinite samples")
		default:
			points = append(points, prom.FPoint{T: s.shift + int64(i)*step, F: v.Value})
		}
	}
	return points
}

// eval compares the gateway's answer to a question with the peer's, and with what is written.
func (s *scripts) eval(where string, q promQuestion, w scripted) {
	want := s.peer.ask(s.Context(), q)
	s.asked++
	switch {
	case want.failed:
		s.failed++
	case len(want.series) > 0:
		s.answered++
	}
	got := askGateway(s.bench, q)
	if d := got.differs(want); d != "" {
		if s.peer.uncertain(s.Context(), q, want) {
			s.uncertain++
			return
		}
		s.Errorf("%s: %s: %s", where, q, d)
	}
	d := w.differs(got, s.shift)
	if d == "" {
		s.written++
		return
	}
	class := s.excuse(q, w)
	if s.excused[class]++; class == "" {
		s.Errorf("%s: %s: not as written: %s", where, q, d)
	}
}
