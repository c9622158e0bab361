package store

import (
	"fmt"
	"strings"
	"time"
)

// FaultKind is the effect of a fault in a store's files.
type FaultKind string

const (
	// Torn is an incomplete end of a log: the rest of a write that was never acknowledged, after a
	// crash, or a damaged last write that was. The two cannot be distinguished. The store opens
	// without it.
	Torn FaultKind = "torn"
	// Mended is damage that the store repairs by itself. Nothing is lost.
	Mended FaultKind = "mended"
	// Unreadable is damage in rows. Only reads of these rows fail.
	Unreadable FaultKind = "unreadable"
	// Lost is damage by which data is lost. The store refuses to open unless it is set to continue
	// with the intact data.
	Lost FaultKind = "lost"
)

// Fault is one thing that is wrong with the files of the embedded store.
type Fault struct {
	Kind   FaultKind
	File   string // without its folder
	Offset int64  // where it begins in the file; -1 if it has no place there
	Bytes  int64  // how many bytes of the file; -1 if that cannot be known
	What   string // in words, without the file and numbers
	// First and Last are the times of the rows that are missing or cannot be read;
	// zero if they cannot be known. The code that opens the store says which times
	// rows have.
	First, Last time.Time
}

// String describes the fault in one line.
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

// DamageError is returned instead of opening a store that has lost data.
type DamageError struct{ Faults []Fault }

// Error describes each fault.
func (e *DamageError) Error() string {
	var all []string
	for _, f := range e.Faults {
		all = append(all, f.String())
	}
	return "the files are damaged: " + strings.Join(all, "; ")
}

// Unwrap makes it ErrDamaged.
func (e *DamageError) Unwrap() error { return ErrDamaged }

// CheckReport is what a check of all files of the embedded store has found.
type CheckReport struct {
	Tables, Logs int   // how many files were read
	Bytes        int64 // in these files
	Faults       []Fault
}
