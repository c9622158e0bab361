package compare

import (
	"fmt"
	"strings"
)

// Kind says in which way two values differ.
type Kind string

// The kinds of difference.
const (
	Missing Kind = "missing"   // wanted, and not there
	Extra   Kind = "extra"     // there, and not wanted
	Type    Kind = "type"      // an object, an array, a string, … for another
	IntType Kind = "int/float" // the same or another number, but an integer for a float or the reverse
	Value   Kind = "value"     // same type, other value
	Length  Kind = "length"    // arrays of different length
	Status  Kind = "status"    // HTTP status
)

// Difference is one place where two answers differ.
type Difference struct {
	Path Path
	Kind Kind
	Want string // JSON text, shortened; empty when Extra
	Got  string // JSON text, shortened; empty when Missing

	// ULPs is the distance of two floats in units in the last place, 0 when the
	// values are no floats; Relative is |want-got| / max(|want|, |got|).
	ULPs     uint64
	Relative float64

	// Permitted is the reason of the Permit that let this difference through.
	Permitted string
}

// String gives the difference on one line: path, kind, want and got.
func (d Difference) String() string {
	s := fmt.Sprintf("%s: %s", d.Path, d.Kind)
	switch d.Kind {
	case Missing:
		s += ", want " + d.Want
	case Extra:
		s += ", got " + d.Got
	default:
		s += fmt.Sprintf(", want %s, got %s", d.Want, d.Got)
	}
	if d.ULPs > 0 {
		s += fmt.Sprintf(" (%d ULP, %.2g relative)", d.ULPs, d.Relative)
	}
	return s
}

// Path leads from the top of a JSON text to a value: object keys, and array
// indexes in brackets ("[0]").
type Path []string

// String writes the path as "[0].dps.1356998400"; the top is "(top)".
func (p Path) String() string {
	if len(p) == 0 {
		return "(top)"
	}
	var b strings.Builder
	for i, step := range p {
		if i > 0 && !strings.HasPrefix(step, "[") {
			b.WriteByte('.')
		}
		b.WriteString(step)
	}
	return b.String()
}

// child returns the path one step on, in memory of its own.
func (p Path) child(step string) Path {
	c := make(Path, len(p)+1)
	copy(c, p)
	c[len(p)] = step
	return c
}

// Report is what a comparison found.
type Report struct {
	Differences []Difference // those that no Permit allows; empty means equal
	Permitted   []Difference // those that one allows
}

// Equal says that nothing differs but what is permitted.
func (r Report) Equal() bool { return len(r.Differences) == 0 }

// shown is how many differences String lists.
const shown = 20

// String lists the first differences, one a line.
func (r Report) String() string {
	if r.Equal() {
		return fmt.Sprintf("equal (%d permitted differences)", len(r.Permitted))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d differences", len(r.Differences))
	for i, d := range r.Differences {
		if i == shown {
			fmt.Fprintf(&b, "\n  … and %d more", len(r.Differences)-shown)
			break
		}
		fmt.Fprintf(&b, "\n  %s", d)
	}
	return b.String()
}
