package report

import (
	"fmt"
	"io"
	"strings"
)

// WriteText prints the report as tables.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "bench %s, %s, %.0f s\ncommit %s\n%s\n",
		r.Command, r.Started.UTC().Format("2006-01-02 15:04 UTC"), r.Seconds, r.Commit, r.Machine)
	for _, line := range [][2]string{{"data", r.Data}, {"caches", r.Cache}} {
		if line[1] != "" {
			fmt.Fprintf(&b, "%s: %s\n", line[0], line[1])
		}
	}

	for _, p := range r.Peers {
		fmt.Fprintf(&b, "%s %s%s\n", p.Name, p.Version, missing(p))
	}

	r.figures(&b)
	r.latencies(&b)
	for _, p := range r.Curves {
		p.text(&b)
	}

	r.changes(&b)
	if len(r.Aims) > 0 {
		fmt.Fprintf(&b, "\n%s\n", AimHead())
		for _, a := range r.Aims {
			fmt.Fprintln(&b, a.Line())
		}
	}

	if len(r.Profiles) > 0 {
		b.WriteString("\nwhere time and memory go, for the aims not met:\n")
	}
	for _, p := range r.Profiles {
		p.text(&b)
	}

	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\nnote: %s", n)
	}

	if len(r.Left) > 0 {
		fmt.Fprintf(&b, "\nleft undone: %s", strings.Join(r.Left, ", "))
	}
	fmt.Fprintln(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// missing says why a peer is missing, and nothing of one that is there.
func missing(p Peer) string {
	if p.Missing == "" {
		return ""
	}
	return "missing: " + p.Missing
}

// figures writes the table of figures, with the ratio of each to the one that it is of.
func (r *Report) figures(b *strings.Builder) {
	if len(r.Figures) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%-66s %10s %10s %10s %16s  %s\n", "", "min ms", "median ms", "max ms", "rate/s", "times")
	for _, f := range r.Figures {
		ratio := ""
		if other, ok := r.Figure(f.Of); ok && f.Of != f.Name {
			ratio = f.Over(other).String() + " " + f.Of
		}
		fmt.Fprintf(b, "%-66s %10.2f %10.2f %10.2f %16s  %s\n",
			f.Name, ms(f.Min()), ms(f.Median()), ms(f.Max()), Thousands(f.Rate())+" "+f.Unit, ratio)
	}
}

// Figure finds a figure by name.
func (r *Report) Figure(name string) (Figure, bool) {
	for _, f := range r.Figures {
		if f.Name == name {
			return f, true
		}
	}
	return Figure{}, false
}

// latencies writes a line for the response times and one for the service times of each
// latency, and then what came, where that was counted.
func (r *Report) latencies(b *strings.Builder) {
	if len(r.Latencies) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%-44s %-28s %8s %6s %9s %9s %9s %9s %9s   ms\n",
		"", "", "requests", "errors", "p50", "p90", "p99", "p99.9", "max")
	for _, l := range r.Latencies {
		for _, d := range []struct {
			what string
			p    []PercentileMS
		}{{"response", l.Response}, {"service", l.Service}} {
			fmt.Fprintf(b, "%-44s %-28s %8d %6d", l.Name, d.what+", "+l.Loop, l.Requests, l.Errors)
			for _, p := range d.p {
				switch p.Percent {
				case 50, 90, 99, 99.9, 100:
					fmt.Fprintf(b, " %9.2f", p.MS)
				}
			}
			b.WriteByte('\n')
		}
	}
	for _, l := range r.Latencies {
		if l.Answers != nil {
			l.Answers.text(b)
		}
	}
}

const aimFormat = "%-12s %-11s %-62s %-28s %-26s %-24s %s"

// AimHead is the line above those of aims.
func AimHead() string {
	return fmt.Sprintf(aimFormat, "row", "data", "what", "against", "aim", "measured", "")
}

// Line is the aim in one line, for a run that prints as it goes.
func (a Aim) Line() string {
	times := ""
	if a.Ours != "" {
		times = " (" + a.Ours
		if a.Theirs != "" {
			times += " against " + a.Theirs
		}
		times += ")"
	}
	return fmt.Sprintf(aimFormat, a.Row, a.Scale, a.What, a.Against, a.Wanted(), a.Measured(), a.Verdict()+times)
}

// WriteBench writes the figures as lines of Go benchmarks, one a run, for
// benchstat, changes as one line a round and build, and of latencies the middle
// and the slow end. Names lose their blanks.
func (r *Report) WriteBench(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "goos: %s\ngoarch: %s\npkg: downpour/bench\ncpu: %s\ncommit: %s\n",
		before(r.Machine.OS), after(r.Machine.OS), r.Machine.CPU, r.Commit)
	for _, f := range r.Figures {
		for _, run := range f.Runs {
			fmt.Fprintf(&b, "Benchmark%s/%s 1 %d ns/op", title(r.Workload), benchName(f.Name), run.Nanoseconds())
			if f.Work > 0 && run > 0 {
				fmt.Fprintf(&b, " %.0f %s/s", float64(f.Work)/run.Seconds(), f.Unit)
			}
			b.WriteByte('\n')
		}
	}

	for _, c := range r.Changes {
		c.benchLines(&b, r.Workload)
	}

	for _, l := range r.Latencies {
		loop, _, _ := strings.Cut(l.Loop, ",") // open or closed, without rate or clients
		fmt.Fprintf(&b, "Benchmark%s/%s/%s %d %d p50-ns %d p99-ns\n", title(r.Workload),
			benchName(l.Name), benchName(loop), max(l.Requests, 1), l.At(50).Nanoseconds(), l.At(99).Nanoseconds())
	}

	_, err := io.WriteString(w, b.String())
	return err
}

// before and after return what stands on either side of the slash in "linux/amd64".
func before(s string) string { s, _, _ = strings.Cut(s, "/"); return s }
func after(s string) string  { _, s, _ = strings.Cut(s, "/"); return s }

// title writes the first letter in upper case, which the name of a Go benchmark needs.
func title(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// benchName is a name without blanks, and without a number at the end that
// would be taken for a count of CPUs.
func benchName(s string) string {
	return strings.NewReplacer(", ", "/", " ", "_", "-", "_").Replace(s)
}

// WriteMarkdown writes the aims as a table for the README.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, commit %s; %s.\n\n", r.Started.UTC().Format("2006-01-02"), r.Commit, r.Machine)
	b.WriteString("| data | what | against | aim | measured | |\n|---|---|---|---|---|---|\n")
	cell := strings.NewReplacer("|", "\\|")
	for _, a := range r.Aims {
		times := a.Ours
		if a.Theirs != "" {
			times += " against " + a.Theirs
		}
		if times != "" {
			times = ": " + times
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s%s | %s |\n",
			a.Scale, cell.Replace(a.What), a.Against, a.Wanted(), a.Measured(), times, a.Verdict())
	}

	for _, p := range r.Peers {
		fmt.Fprintf(&b, "\n%s %s%s", p.Name, p.Version, missing(p))
	}

	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}
