package store

import "context"

// Replacer is a store that can change rows on the condition that they are as they were
// read. Both stores have it; a store that wraps another one need not.
type Replacer interface {
	// Replace carries out changes of rows, each of another row, and returns what came
	// of each. What others write meanwhile is never lost: a row in which anything has
	// changed since it was read keeps every cell that is not in Read as it is, and
	// loses nothing of what it has. It returns once everything is durable. After an
	// error any of the changes may have been carried out in part; what is in Delete
	// goes only after what is in Put has come.
	Replace(ctx context.Context, table, family string, changes []Replacement) ([]Outcome, error)
}

// Replacement is a change of one row's cells of one family.
type Replacement struct {
	Read Row // all cells of the family, as Scan or Get has returned them
	// Put are cells to write, by qualifier, value and timestamp. A cell's timestamp is
	// that of the newest cell that it takes the place of: then whatever is written
	// later is newer than it. A cell with a qualifier of Read takes the place of that
	// one alone: another writer may write over it at any time.
	Put []Cell
	// Delete are cells of Read, none with a qualifier of Put.
	Delete []Cell
}

// Outcome is what came of a replacement.
type Outcome uint8

// Outcomes. All but Replaced leave every point where a reader finds it.
const (
	Changed   Outcome = iota // the row is not as it was read
	Replaced                 // it is done
	Hidden                   // what was put cannot be read: a newer deletion of its column hides it
	Undatable                // a cell has no time of writing, without which it cannot be deleted
)

// String says what came of it.
func (o Outcome) String() string {
	return [...]string{"the row has changed meanwhile", "replaced",
		"a newer deletion hides what was written, until HBase's next major compaction", "a cell has no time of writing"}[o]
}
