package report

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"downpour/bench/paired"
)

// drawn is a change between two builds, drawn at random: in each of so many rounds B takes ratio
// times as long as A, except for noise.
func drawn(r *rand.Rand, rounds int, ratio, noise float64) Change {
	c := Change{Row: "all", Store: "embedded", What: "sum:5m-avg", Unit: Seconds, Tolerance: 0.05}
	for range rounds {
		level := 0.02 * math.Exp(0.3*r.NormFloat64()) // of the machine, for both
		c.A, c.B = append(c.A, level), append(c.B, level*ratio*math.Exp(noise*r.NormFloat64()))
	}
	c.Compare()
	return c
}

// A planted difference is found, and none is found where none was planted. Each case counts the
// verdicts of 1,000 runs of 12 rounds whose ratios scatter by 3 %.
func TestChange_planted(t *testing.T) {
	const runs, rounds, noise, seed = 1000, 12, 0.03, 11
	f := func(ratio float64, verdict string, least, most int) {
		t.Helper()
		r := rand.New(rand.NewPCG(seed, uint64(ratio*1000)))
		n := 0
		for range runs {
			if drawn(r, rounds, ratio, noise).Verdict() == verdict {
				n++
			}
		}
		if n < least || n > most {
			t.Errorf("seed %d: of %d runs with B at %.2fx %d are %s, want %d to %d",
				seed, runs, ratio, n, verdict, least, most)
		}
	}
	f(1.10, Worse, 900, runs)
	f(1.00, Worse, 0, 0)
	f(1.00, Better, 0, 0)
	f(1.03, Worse, 0, 5)
	// At the border itself at most one interval in 40 lies beyond it; 20 is four standard
	// deviations of that count.
	f(1.05, Worse, 0, runs/40+20)
	f(0.85, Better, 990, runs)
	f(1.30, Worse, runs, runs)
}

func TestChange_verdict(t *testing.T) {
	f := func(want string, low, high, confidence float64) {
		t.Helper()
		c := Change{
			Tolerance: 0.05,
			Ratio:     paired.Interval{Low: low, Median: (low + high) / 2, High: high, Confidence: confidence},
		}
		if got := c.Verdict(); got != want {
			t.Errorf("%v is %s, want %s", c.Ratio, got, want)
		}
	}
	f(Worse, 1.051, 1.2, 0.96)
	f(Noise, 1.049, 1.2, 0.96) // the interval begins within 5 %
	f(Same, 0.96, 1.04, 0.96)
	f(Noise, 0.90, 1.10, 0.96)
	f(Better, 0.8, 0.949, 0.96)
	f(Noise, 0.8, 0.951, 0.96)
	f(TooFew, 2, 3, 0.9375)

	missing := Change{Unit: Seconds, A: []float64{1}, B: []float64{0}}
	missing.Compare()
	if missing.Verdict() != "missing" || !strings.Contains(missing.Line(), "missing: pair 0: got 1 and 0") {
		t.Errorf("%s, want missing, with the pair that has no ratio", missing.Line())
	}
}

// A change is in the text, on the page and in the lines for benchstat. Worsened names the rows that
// are worse.
func TestChange_written(t *testing.T) {
	r := sample()
	worse := Change{
		Row:       "memory-put",
		Store:     "HBase, multi",
		What:      "memory <peak>",
		Unit:      Bytes,
		Tolerance: 0.05,
		Processor: &paired.Interval{Median: 1, Low: 0.9, High: 1.1},
	}
	for range paired.Fewest {
		worse.A, worse.B = append(worse.A, 100<<20), append(worse.B, 150<<20)
	}
	worse.Compare()
	r.Changes = []Change{drawn(rand.New(rand.NewPCG(1, 1)), 9, 1, 0.01), worse}

	var text, page, bench bytes.Buffer
	for _, err := range []error{r.WriteText(&text), r.WriteHTML(&page), r.WriteBench(&bench)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for out, wants := range map[*bytes.Buffer][]string{
		&text: {"B/A", "100.0 MiB   150.0 MiB 1.500x (1.500 to 1.500)", "1.000x (0.900 to 1.100)", "worse"},
		&page: {"memory &lt;peak&gt;", "1.500x (1.500 to 1.500)", `class="not">worse`},
		&bench: {
			"BenchmarkCompare/embedded/all/build=A 1 ",
			"BenchmarkCompare/HBase/multi/memory_put/build=B 1 157286400 B\n",
		},
	} {
		for _, want := range wants {
			if !strings.Contains(out.String(), want) {
				t.Errorf("lacks %q:\n%s", want, out)
			}
		}
	}
	if got := r.Worsened(); len(got) != 1 || got[0].Row != "memory-put" {
		t.Errorf("worsened: %+v, want memory-put", got)
	}
}
