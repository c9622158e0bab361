package report

import (
	"fmt"
	"strings"
	"time"
)

// Profile says what one figure is made of: of a time, what one run takes of each
// process's processor time, and of the gateway's which functions; of memory, what
// the gateway's was when it was most, and which functions hold it.
type Profile struct {
	Figure string        `json:"figure"` // name of what was repeated
	Runs   int           `json:"runs"`
	Took   time.Duration `json:"took,omitempty"` // ns of one run, on average; longer than unobserved
	// Bytes are the resident memory, at its most, of a profile of memory.
	Bytes int64 `json:"bytes,omitempty"`
	// Processes share the processors: with two of them, a run in which one
	// process alone is busy leaves the other idle.
	Processes []Share `json:"processes,omitempty"`
	// Parts are what the resident memory consists of.
	Parts []Share `json:"parts,omitempty"`
	// Functions are those of our own code and of libraries, each with what it
	// spends in itself and in the runtime, or with what it has made and is still
	// held; the most first.
	Functions []Share `json:"functions"`
}

// Share is what one run takes of something.
type Share struct {
	Name  string        `json:"name"`
	Took  time.Duration `json:"took,omitempty"`  // ns of processor time of one run
	Bytes int64         `json:"bytes,omitempty"` // of a profile of memory
}

// MiB writes bytes as "12.3 MiB".
func MiB(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// AddProfile takes a profile, in place of an earlier one of the same figure.
func (r *Report) AddProfile(p Profile) {
	for i := range r.Profiles {
		if r.Profiles[i].Figure == p.Figure {
			r.Profiles[i] = p
			return
		}
	}
	r.Profiles = append(r.Profiles, p)
}

// Head is the profile in one line: "38.4 ms a run (of 130); processor time of
// one: gateway 31.0 ms, region servers 12.1 ms", or "162.0 MiB resident at most (of
// 2 runs): Go's heap in use 60.1 MiB, …".
func (p Profile) Head() string {
	if p.Bytes != 0 {
		return fmt.Sprintf("%s resident at most (of %d runs): %s", MiB(p.Bytes), p.Runs, p.listed(p.Parts))
	}
	return fmt.Sprintf("%s a run (of %d); processor time of one: %s", MS(p.Took), p.Runs, p.listed(p.Processes))
}

func (p Profile) listed(shares []Share) string {
	var all []string
	for _, s := range shares {
		all = append(all, s.Name+" "+p.Amount(s))
	}
	return strings.Join(all, ", ")
}

// Amount is the time or the memory of a share.
func (p Profile) Amount(s Share) string {
	if p.Bytes != 0 {
		return MiB(s.Bytes)
	}
	return MS(s.Took)
}

// Column says what is next to the functions.
func (p Profile) Column() string {
	if p.Bytes != 0 {
		return "held at most, garbage collected"
	}
	return "of one run"
}

func (p Profile) text(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s: %s\n  %s\n", p.Figure, p.Head(), p.Column())
	for _, f := range p.Functions {
		fmt.Fprintf(b, "  %10s  %s\n", p.Amount(f), f.Name)
	}
}
