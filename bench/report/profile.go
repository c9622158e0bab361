package report

import (
	"fmt"
	"strings"
	"time"
)

// Profile says where the time of one figure goes: what one run of it takes of
// each process's processor time, and of the gateway's which functions.
type Profile struct {
	Figure string        `json:"figure"` // name of what was repeated
	Runs   int           `json:"runs"`
	Took   time.Duration `json:"took"` // ns of one run, on average; longer than unobserved
	// Processes share the processors: with two of them, a run in which one
	// process alone is busy leaves the other idle.
	Processes []Share `json:"processes"`
	// Functions are those of our own code and of libraries, each with what it
	// spends in itself and in the runtime; the most first.
	Functions []Share `json:"functions"`
}

// Share is what one run takes of something.
type Share struct {
	Name string        `json:"name"`
	Took time.Duration `json:"took"` // ns of processor time of one run
}

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
// one: gateway 31.0 ms, region servers 12.1 ms".
func (p Profile) Head() string {
	var shares []string
	for _, s := range p.Processes {
		shares = append(shares, s.Name+" "+MS(s.Took))
	}
	return fmt.Sprintf("%s a run (of %d); processor time of one: %s", MS(p.Took), p.Runs, strings.Join(shares, ", "))
}

func (p Profile) text(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s: %s\n", p.Figure, p.Head())
	for _, f := range p.Functions {
		fmt.Fprintf(b, "  %10s  %s\n", MS(f.Took), f.Name)
	}
}
