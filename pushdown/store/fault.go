package store

import (
	"fmt"
	"strings"
	"time"
)

// FaultKind says what a fault of a store's files means.
type FaultKind string

const (
	// Torn is an end that was never acknowledged, as a crash leaves it, or the
	// last of what was: nothing can tell the two apart. The store opens without it.
	Torn FaultKind = "torn"
	// Mended is damage that the store has put right by itself: nothing is lost.
	Mended FaultKind = "mended"
	// Unreadable is damage that only reads of the rows in it meet.
	Unreadable FaultKind = "unreadable"
	// Lost is damage for which the store refuses to open unless it is told to go
	// on with what is whole.
	Lost FaultKind = "lost"
)

// Fault is one thing that is wrong with the files of an embedded store.
type Fault struct {
	Kind   FaultKind
	File   string // without its folder
	Offset int64  // where it begins; -1 where that means nothing
	Bytes  int64  // how many of the file's bytes; -1 if nobody can know
	What   string // in words, without file and numbers
	// First and Last are the hours of the points that are missing or cannot be
	// read, as far as can be known; zero if it cannot.
	First, Last time.Time
}

// String is one line.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Offset >= 0 {
		fmt.Fprintf(&b, " at offset %d", f.Offset)
	}
	fmt.Fprintf(&b, ": %s", f.What)
	switch {
	case f.Bytes == 1:
		b.WriteString(", 1 byte")
	case f.Bytes >= 0:
		fmt.Fprintf(&b, ", %d bytes", f.Bytes)
	}
	if !f.First.IsZero() {
		const hour = "2006-01-02 15:04"
		fmt.Fprintf(&b, ", hours from %s to %s UTC", f.First.UTC().Format(hour), f.Last.UTC().Format(hour))
	}
	return b.String()
}

// DamageError refuses to open a store that has lost something.
type DamageError struct{ Faults []Fault }

// Error names each fault.
func (e *DamageError) Error() string {
	var all []string
	for _, f := range e.Faults {
		all = append(all, f.String())
	}
	return "the files are damaged: " + strings.Join(all, "; ")
}

// Unwrap makes it ErrDamaged.
func (e *DamageError) Unwrap() error { return ErrDamaged }

// CheckReport is what a look at all files of an embedded store has found.
type CheckReport struct {
	Tables, Logs int   // files that were read
	Bytes        int64 // in them
	Faults       []Fault
}
