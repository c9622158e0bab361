// Package report is what a benchmark run leaves behind: figures, latencies,
// curves and aims, with all it takes to repeat the run. One Report is written as
// text, as JSON, as lines for benchstat, as a page of HTML that needs nothing
// else, and as the README's table.
package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Report is one run of one workload.
type Report struct {
	Workload string    `json:"workload"`
	Command  string    `json:"command"` // arguments, to repeat it
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"seconds"`
	Commit   string    `json:"commit"` // "+" at the end: with changes
	Machine  Machine   `json:"machine"`
	Data     string    `json:"data"`
	Cache    string    `json:"cache"` // what was warm when it was measured
	Peers    []Peer    `json:"peers,omitempty"`

	Aims      []Aim     `json:"aims,omitempty"`
	Changes   []Change  `json:"changes,omitempty"`
	Profiles  []Profile `json:"profiles,omitempty"` // of aims that are not met
	Figures   []Figure  `json:"figures,omitempty"`
	Latencies []Latency `json:"latencies,omitempty"`
	Curves    []Plot    `json:"curves,omitempty"`
	Notes     []string  `json:"notes,omitempty"`
	Left      []string  `json:"left,omitempty"` // what an interrupted run has not done
}

// Peer is a system that was measured, or that was to be.
type Peer struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Missing string `json:"missing,omitempty"` // why it could not be
}

// New begins a report on this machine and build.
func New(workload string, args []string) *Report {
	return &Report{
		Workload: workload,
		Command:  strings.Join(args, " "),
		Started:  time.Now(),
		Commit:   commit(),
		Machine:  thisMachine(),
	}
}

// Done notes how long the run took.
func (r *Report) Done() *Report {
	r.Seconds = time.Since(r.Started).Seconds()
	return r
}

// AddPeer names a system once: the latest entry of one that is there, or else the first
// reason why it is missing.
func (r *Report) AddPeer(p Peer) {
	p.Missing, _, _ = strings.Cut(p.Missing, "\n")
	i := slices.IndexFunc(r.Peers, func(old Peer) bool { return old.Name == p.Name })
	switch {
	case i < 0:
		r.Peers = append(r.Peers, p)
	case p.Missing == "":
		r.Peers[i] = p
	}
}

// Note adds a remark once.
func (r *Report) Note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.Notes, text) {
		r.Notes = append(r.Notes, text)
	}
}

// Figure is one measured thing: the times of its runs.
type Figure struct {
	Name string          `json:"name"`
	Of   string          `json:"of,omitempty"` // the figure that ratios are of
	Work int64           `json:"work"`         // how much one run did, in Unit
	Unit string          `json:"unit"`         // points, rows, …
	Runs []time.Duration `json:"runs"`         // ns, in the order of the rounds
}

// Median is the middle one of the runs, or the mean of the two in the middle:
// the one to quote. It is 0 without runs.
func (f Figure) Median() time.Duration {
	runs := slices.Sorted(slices.Values(f.Runs))
	if len(runs) == 0 {
		return 0
	}
	return (runs[(len(runs)-1)/2] + runs[len(runs)/2]) / 2
}

// Min is the quickest run: what the machine can do when nothing disturbs it.
func (f Figure) Min() time.Duration {
	if len(f.Runs) == 0 {
		return 0
	}
	return slices.Min(f.Runs)
}

// Max is the slowest run; far from the median, it shows a noisy machine.
func (f Figure) Max() time.Duration {
	if len(f.Runs) == 0 {
		return 0
	}
	return slices.Max(f.Runs)
}

// Rate is work per second of the median run.
func (f Figure) Rate() float64 {
	if m := f.Median(); m > 0 {
		return float64(f.Work) / m.Seconds()
	}
	return 0
}

// Ratio is how many times one thing is another.
type Ratio struct {
	Median float64 `json:"median"` // of the medians
	Low    float64 `json:"low"`    // the smallest ratio of one round
	High   float64 `json:"high"`   // and the largest
}

// Single is the ratio of a measurement without rounds.
func Single(x float64) Ratio { return Ratio{Median: x, Low: x, High: x} }

// String is the ratio with its spread: "5.32x (4.9 to 6.0)".
func (r Ratio) String() string {
	s := number(r.Median) + "x"
	if r.Low != r.High {
		s += fmt.Sprintf(" (%s to %s)", number(r.Low), number(r.High))
	}
	return s
}

// number writes a ratio with about three digits.
func number(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// Over is how many times the figure's time is that of another, which was
// measured in the same rounds.
func (f Figure) Over(other Figure) Ratio {
	if other.Median() <= 0 {
		return Ratio{}
	}
	r := Ratio{Median: float64(f.Median()) / float64(other.Median())}
	r.Low, r.High = r.Median, r.Median
	for i := range min(len(f.Runs), len(other.Runs)) {
		x := float64(f.Runs[i]) / float64(max(other.Runs[i], 1)) // a run of 0 ns has no ratio
		r.Low, r.High = min(r.Low, x), max(r.High, x)
	}
	return r
}

// Aim is one promise of speed and what became of it. Want and Got are ratios, or
// amounts in Unit where nothing is compared.
type Aim struct {
	Row     string  `json:"row"`   // name for -rows
	Scale   string  `json:"scale"` // size of the data
	What    string  `json:"what"`
	Against string  `json:"against,omitempty"`
	AtLeast bool    `json:"atLeast"` // else at most
	Want    float64 `json:"want"`
	Unit    string  `json:"unit,omitempty"` // empty: a ratio
	Got     Ratio   `json:"got"`
	Ours    string  `json:"ours,omitempty"`   // what was measured, such as 31 ms
	Theirs  string  `json:"theirs,omitempty"` // of the peer
	Figure  string  `json:"figure,omitempty"` // name of ours
	// Missing says why nothing was measured.
	Missing string `json:"missing,omitempty"`
}

// Met reports whether the aim was reached.
func (a Aim) Met() bool {
	if a.Missing != "" {
		return false
	}
	if a.AtLeast {
		return a.Got.Median >= a.Want
	}
	return a.Got.Median <= a.Want
}

// Verdict is met, not met or missing with its reason.
func (a Aim) Verdict() string {
	switch {
	case a.Missing != "":
		return "missing: " + a.Missing
	case a.Met():
		return "met"
	}
	return "not met"
}

// Wanted writes the aim: "at least 5x".
func (a Aim) Wanted() string {
	if a.Want == 0 {
		return "-" // missing, before anybody knew what was to be wanted
	}
	return map[bool]string{true: "at least ", false: "at most "}[a.AtLeast] + a.amount(a.Want)
}

// Measured writes what came out, without digits that mean nothing.
func (a Aim) Measured() string {
	switch {
	case a.Missing != "":
		return "-"
	case a.Unit != "":
		return a.amount(a.Got.Median)
	}
	return a.Got.String()
}

// amount writes a ratio, or an amount with its unit.
func (a Aim) amount(x float64) string {
	if a.Unit == "" {
		return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", x), "0"), ".") + "x"
	}
	if x >= 1000 {
		return thousands(int64(x)) + " " + a.Unit
	}
	return fmt.Sprintf("%.4g %s", x, a.Unit)
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
