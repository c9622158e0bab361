package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"downpour/bench/paired"
)

// Units of a Change's amounts.
const (
	Seconds = "s"
	Bytes   = "B"
)

// Change is one row of a comparison of two builds or servers, A and B, that were
// measured in turn: how many times A's amount B's is. The larger an amount, the
// worse it is.
type Change struct {
	Row   string    `json:"row"`   // name for -rows
	Store string    `json:"store"` // that it was measured on
	What  string    `json:"what"`
	Unit  string    `json:"unit"` // Seconds or Bytes
	A     []float64 `json:"a"`    // by round
	B     []float64 `json:"b"`
	// Ratio is B's amount over A's.
	Ratio paired.Interval `json:"ratio"`
	// Processor is the same of the processor time that both took, nil where
	// there is none. It says more on a busy machine; no verdict depends on it.
	Processor *paired.Interval `json:"processor,omitempty"`
	// Tolerance is the part of A's amount by which B's may differ: 0.05 is 5 %.
	Tolerance float64 `json:"tolerance"`
	// Missing says why there is no ratio.
	Missing string `json:"missing,omitempty"`
}

// Compare fills in the ratio of A and B, or why there is none.
func (c *Change) Compare() {
	var err error
	if c.Ratio, err = paired.Ratio(c.A, c.B); err != nil && c.Missing == "" {
		c.Missing = err.Error()
	}
}

// Verdicts of a Change.
const (
	Worse     = "worse"             // the whole interval lies beyond the tolerance
	Better    = "better"            // the whole interval lies below it
	Same      = "same"              // the whole interval lies within it
	Noise     = "same within noise" // the interval reaches beyond it, but not as a whole
	TooFew    = "too few rounds"    // for an interval
	noVerdict = "missing"
)

// Verdict says what the interval shows.
func (c Change) Verdict() string {
	low, high := 1-c.Tolerance, 1+c.Tolerance
	switch {
	case c.Missing != "":
		return noVerdict
	case !c.Ratio.Sure():
		return TooFew
	case c.Ratio.Low > high:
		return Worse
	case c.Ratio.High < low:
		return Better
	case c.Ratio.Low >= low && c.Ratio.High <= high:
		return Same
	}
	return Noise
}

// Amount is the median of A's or B's amounts, as people read it.
func (c Change) Amount(amounts []float64) string {
	if len(amounts) == 0 {
		return "-"
	}

	middle := paired.Median(amounts)
	if c.Unit == Bytes {
		return fmt.Sprintf("%.1f MiB", middle/(1<<20))
	}
	return MS(time.Duration(middle * float64(time.Second)))
}

// Measured is the ratio with its interval, "-" where there is none.
func (c Change) Measured() string {
	if c.Missing != "" {
		return "-"
	}
	return c.Ratio.String()
}

// ByProcessor is the ratio of processor times, "-" where there is none.
func (c Change) ByProcessor() string {
	if c.Missing != "" || c.Processor == nil {
		return "-"
	}
	return c.Processor.String()
}

const changeFormat = "%-18s %-15s %-58s %11s %11s %-24s %-24s %s"

// ChangeHead is the line above those of changes.
func ChangeHead() string {
	return fmt.Sprintf(changeFormat, "store", "row", "what", "A", "B", "B/A", "processor time, B/A", "")
}

// Line is the change in one line.
func (c Change) Line() string {
	verdict := c.Verdict()
	if c.Missing != "" {
		verdict += ": " + c.Missing
	}
	return fmt.Sprintf(changeFormat, c.Store, c.Row, c.What, c.Amount(c.A), c.Amount(c.B), c.Measured(),
		c.ByProcessor(), verdict)
}

// Worsened returns the changes for the worse.
func (r *Report) Worsened() (all []Change) {
	for _, c := range r.Changes {
		if c.Verdict() == Worse {
			all = append(all, c)
		}
	}
	return all
}

// changes writes the table of changes.
func (r *Report) changes(b *strings.Builder) {
	if len(r.Changes) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", ChangeHead())
	for _, c := range r.Changes {
		fmt.Fprintln(b, c.Line())
	}
}

// benchLines writes a line for each round, A and B as values of a key that
// benchstat -col /build compares.
func (c Change) benchLines(w io.Writer, workload string) {
	for _, of := range []struct {
		build   string
		amounts []float64
	}{{"A", c.A}, {"B", c.B}} {
		name := fmt.Sprintf("Benchmark%s/%s/%s/build=%s",
			title(workload), benchName(c.Store), benchName(c.Row), of.build)
		for _, x := range of.amounts {
			if c.Unit == Bytes {
				fmt.Fprintf(w, "%s 1 %.0f B\n", name, x)
			} else {
				fmt.Fprintf(w, "%s 1 %.0f ns/op\n", name, x*1e9)
			}
		}
	}
}
