package store

// Replacement is a change of one row's cells of one family.
type Replacement struct {
	Read Row // all cells of the family, as Scan or Get has returned them
	// Put are cells to write, by qualifier, value and timestamp. A cell's timestamp is that of the
	// newest cell that it replaces: then any later write is newer. A cell with a qualifier of Read
	// replaces only that one: another writer may overwrite it at any time.
	Put []Cell
	// Delete are cells of Read, none with a qualifier of Put.
	Delete []Cell
}

// Outcome is the result of a replacement.
type Outcome uint8

// Outcomes. All except Replaced keep every point where a reader finds it.
const (
	Changed   Outcome = iota // the row is not as it was read
	Replaced                 // it is done
	Hidden                   // what was put cannot be read: a newer deletion of its column hides it
	Undatable                // a cell has no time of writing, without which it cannot be deleted
)

// String describes the result.
func (o Outcome) String() string {
	return [...]string{"the row has changed since it was read", "replaced",
		"a newer deletion hides what was written, until HBase's next major compaction",
		"a cell has no time of writing"}[o]
}
