package report

import (
	"bytes"
	"encoding/xml"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func sample() *Report {
	r := New("compare", []string{"compare", "-rows", "one<host>"})
	r.Data, r.Cache = "2160000 points", "warm"
	r.AddPeer(Peer{Name: "OpenTSDB", Version: "2.4.1"})
	r.AddPeer(Peer{Name: "VictoriaMetrics", Missing: "no package\nand its log"})
	r.AddPeer(Peer{Name: "VictoriaMetrics", Missing: "another reason"})
	r.AddPeer(Peer{Name: "OpenTSDB", Missing: "came back"})
	r.Figures = []Figure{
		{Name: "OpenTSDB, sum:5m-avg", Work: 1000, Unit: "points", Runs: []time.Duration{400e6, 600e6, 500e6}},
		{
			Name: "Downpour, sum:5m-avg",
			Of:   "OpenTSDB, sum:5m-avg",
			Work: 1000,
			Unit: "points",
			Runs: []time.Duration{100e6, 100e6, 50e6},
		},
	}
	h := NewHistogram()
	for i := range 1000 {
		h.Record(time.Duration(i) * time.Millisecond)
	}
	r.Latencies = []Latency{NewLatency("a & b", "open, 10.0 a second", h, h, 1)}
	var all Tallies
	for i := range 100 {
		all.Add("often\nasked", Answer{Took: time.Duration(i+1) * time.Millisecond, Points: 1000, Bytes: 20_000})
	}
	all.Add("slow", Answer{Took: 6 * time.Second, Points: 100_000, Bytes: 2_000_000})
	all.Add("wrong", Answer{Took: time.Hour, Points: 7, Failed: true})
	r.Latencies[0].Answers = all.Of(2 * time.Second)
	p := Plot{Name: "cost <x>", X: "points", Y: "ms", LogX: true}
	p.Add("strict", 1000, 3)
	p.Add("strict", 1000000, 70)
	p.Add("partial", 1000, 2)
	r.Curves = []Plot{p}
	r.Aims = []Aim{
		{
			Row:     "compacted",
			Scale:   "1x",
			What:    "sum:5m-avg|x",
			Against: "OpenTSDB",
			AtLeast: true,
			Want:    5,
			Got:     Ratio{5.1, 4, 6},
			Ours:    "31 ms",
			Theirs:  "150 ms",
		},
		{Row: "memory", Scale: "100 M", What: "memory", Want: 512, Unit: "MiB", Got: Ratio{600, 600, 600}},
		{
			Row:     "embedded",
			Scale:   "1x",
			What:    "sum:5m-avg",
			Against: "VictoriaMetrics",
			AtLeast: true,
			Want:    2,
			Missing: "no package",
		},
	}
	r.AddProfile(Profile{Figure: "OpenTSDB, sum:5m-avg", Runs: 1})
	r.AddProfile(Profile{
		Figure:    "OpenTSDB, sum:5m-avg",
		Runs:      130,
		Took:      38e6,
		Processes: []Share{{Name: "gateway", Took: 31e6}, {Name: "region server", Took: 12e6}},
		Functions: []Share{{Name: "downpour/encoding.<decode>", Took: 4e6}},
	})
	r.AddProfile(Profile{
		Figure:    "memory",
		Runs:      2,
		Bytes:     600 << 20,
		Parts:     []Share{{Name: "Go's heap in use", Bytes: 500 << 20}, {Name: "the program", Bytes: 35 << 20}},
		Functions: []Share{{Name: "downpour/gateway/query/merge.<take>", Bytes: 300 << 20}},
	})
	r.Note("one note")
	r.Note("one note")
	r.Left = []string{"eight"}
	return r.Done()
}

func TestFigure(t *testing.T) {
	r := sample()
	if f := r.Figures[0]; f.Median() != 500e6 || f.Min() != 400e6 || f.Max() != 600e6 || f.Rate() != 2000 {
		t.Errorf("median %v min %v max %v rate %v", f.Median(), f.Min(), f.Max(), f.Rate())
	}
	// The ratio is of the medians, its spread that of the single rounds.
	if got, want := r.Figures[0].Over(r.Figures[1]), (Ratio{5, 4, 10}); got != want {
		t.Errorf("ratio %v, want %v", got, want)
	}
	if (Figure{}).Median() != 0 || (Figure{}).Rate() != 0 || (Figure{}).Over(Figure{}) != (Ratio{}) {
		t.Error("a figure without runs: the median, rate or ratio is not 0")
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	a, b := Figure{}, Figure{}
	for range 9 {
		a.Runs = append(a.Runs, time.Duration(1+rnd.IntN(1e9)))
		b.Runs = append(b.Runs, time.Duration(1+rnd.IntN(1e9)))
	}
	if x := a.Over(b); x.Low > x.Median || x.High < x.Median {
		t.Errorf("the ratio %v lies outside its spread", x)
	}
}

func TestAim(t *testing.T) {
	f := func(a Aim, wanted, measured, verdict string) {
		t.Helper()
		if a.Wanted() != wanted || a.Measured() != measured || a.Verdict() != verdict {
			t.Errorf("%q %q %q, want %q %q %q", a.Wanted(), a.Measured(), a.Verdict(), wanted, measured, verdict)
		}
	}
	f(sample().Aims[0], "at least 5x", "5.10x (4.00 to 6.00)", "met")
	f(sample().Aims[1], "at most 512 MiB", "600 MiB", "not met")
	f(sample().Aims[2], "at least 2x", "-", "missing: no package")
	f(Aim{AtLeast: true, Want: 600000, Unit: "points/s", Got: Ratio{Median: 1234567}}, "at least 600,000 points/s",
		"1,234,567 points/s", "met")
	f(Aim{Want: 1.8, Got: Ratio{1.8, 1.8, 1.8}}, "at most 1.8x", "1.80x", "met")
	f(Aim{Want: 1.8, Got: Ratio{1.81, 1.81, 1.81}}, "at most 1.8x", "1.81x", "not met")
}

// The page shows everything and loads nothing from elsewhere; its SVG is well formed.
func TestWriteHTML(t *testing.T) {
	var b bytes.Buffer
	if err := sample().WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<p>50.5 requests/s, 100,000 points/s, 2.0 MB/s</p>", "<code>often asked</code>",
		"one&lt;host&gt;", "cost &lt;x&gt;", "a &amp; b", "5.10x", "not met", "missing: no package",
		"Left undone: eight", "<svg", "one note", "gateway 31.0 ms", "downpour/encoding.&lt;decode&gt;",
		"600.0 MiB resident at most (of 2 runs): Go&#39;s heap in use 500.0 MiB, the program 35.0 MiB",
		"300.0 MiB<td><code>downpour/gateway/query/merge.&lt;take&gt;"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if at := regexp.MustCompile(`(?i)(src|href|url\(|@import|https?:)`).FindString(b.String()); at != "" {
		t.Errorf("the page refers to something else: %q", at)
	}
	for _, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(b.String(), -1) {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v in %s", err, svg)
			}
		}
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("a coordinate is not a number: %s", svg)
		}
	}
}

func TestSave_read(t *testing.T) {
	r, dir := sample(), filepath.Join(t.TempDir(), "results")
	for range 2 { // the second replaces the first
		path, err := r.Save(dir)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Read(strings.TrimSuffix(path, ".html") + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(r, again, cmp.Comparer(time.Time.Equal)); d != "" {
			t.Errorf("-written +read\n%s", d)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 3 {
		t.Errorf("%d files, want 3: %v", len(files), err)
	}
	file := filepath.Join(dir, "x")
	if err := os.WriteFile(file, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(file); err == nil || !strings.Contains(err.Error(), "no report") {
		t.Errorf("half a report: error %v", err)
	}
	if _, err := r.Save(file); err == nil {
		t.Error("saving into a file succeeded")
	}
}

func TestWriteText(t *testing.T) {
	var text, bench, table bytes.Buffer
	r := sample()
	for _, err := range []error{r.WriteText(&text), r.WriteBench(&bench), r.WriteMarkdown(&table)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"OpenTSDB 2.4.1", "VictoriaMetrics missing: no package", "left undone: eight",
		"strict", "1M: 70", "0.20x",
		"50.5 requests/s, 100,000 points/s, 2.0 MB/s",
		"       1      0   6000.00   6000.00   6000.00        100,000      2.00  slow\n     100      0     " +
			"50.00     99.00    100.00        100,000      2.00  often asked\n" +
			"       0      1      0.00      0.00      0.00              0      0.00  wrong\n",
		"38.0 ms a run (of 130); processor time of one: gateway 31.0 ms, region server 12.0 ms",
		"4.00 ms  downpour/encoding.<decode>",
		"600.0 MiB resident at most (of 2 runs): Go's heap in use 500.0 MiB, the program 35.0 MiB",
		" 300.0 MiB  downpour/gateway/query/merge.<take>"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("text lacks %q:\n%s", want, &text)
		}
	}
	if n := strings.Count(text.String(), "a run (of"); n != 1 {
		t.Errorf("%d profiles, want 1: the later of the two of one figure\n%s", n, &text)
	}
	// What benchstat reads: a name without blanks, a count, values with units.
	line := regexp.MustCompile(`^(Benchmark\S+ \d+ \d+ ns/op( \d+ \S+/s)?|Benchmark\S+ \d+ \d+ p50-ns \d+ p99-ns|` +
		`(goos|goarch|pkg|cpu|commit): .*)$`)
	for l := range strings.Lines(bench.String()) {
		if !line.MatchString(strings.TrimSuffix(l, "\n")) {
			t.Errorf("benchstat cannot read %q", l)
		}
	}
	if n := strings.Count(bench.String(), "ns/op"); n != 6 {
		t.Errorf("%d runs, want 6", n)
	}
	if n := strings.Count(bench.String(), "p99-ns"); n != len(r.Latencies) || n == 0 {
		t.Errorf("%d latencies, want %d:\n%s", n, len(r.Latencies), &bench)
	}
	if want := `| 1x | sum:5m-avg\|x | OpenTSDB | at least 5x | 5.10x (4.00 to 6.00): ` +
		`31 ms against 150 ms | met |`; !strings.Contains(table.String(), want) {
		t.Errorf("table lacks %s:\n%s", want, &table)
	}
}

// The median of two merged histograms is right to 1 %, and a time of two hours counts as one hour.
func TestHistogram(t *testing.T) {
	h, other := NewHistogram(), NewHistogram()
	for i := 1; i <= 1000; i++ {
		[]*Histogram{h, other}[i%2].Record(time.Duration(i) * time.Millisecond)
	}
	h.Record(2 * time.Hour)
	h.Merge(other)
	got := time.Duration(h.h.ValueAtPercentile(50)) * time.Microsecond
	if got < 495*time.Millisecond || got > 505*time.Millisecond {
		t.Errorf("median %v, want about 500 ms", got)
	}
	l := NewLatency("x", "closed", h, h, 0)
	if l.Requests != 1001 || l.At(100) < 59*time.Minute {
		t.Errorf("%d requests, longest %v; want 1001, and about an hour", l.Requests, l.At(100))
	}
}
