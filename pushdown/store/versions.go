package store

import "context"

// Versioned is a store that keeps old versions of cells, and markers of deletions, until
// it drops them in the background.
type Versioned interface {
	// Versions reads rows of a key range from its start on, at most maxRows and fewer
	// where they are large, each with everything of the family that still exists. It
	// returns the key at which to continue, nil at the end of the range. It may return
	// no row and not be at the end.
	Versions(ctx context.Context, table, family string, keys KeyRange,
		maxRows int) (rows []VersionRow, next []byte, err error)
	// ChangeIf carries out changes of rows, each of another row, ascending by key, and
	// reports for each whether its condition held. A change and the check of its condition
	// are one atomic operation. After an error any of the changes may have been carried
	// out. It may carry out a change a second time if the first reply is lost, so a change
	// must not make its own condition false.
	ChangeIf(ctx context.Context, table, family string, changes []ConditionalChange) ([]bool, error)
	// CheckVersions returns why deletions of single versions would gain nothing in a
	// family, or do something else than they do by default; nil if neither.
	CheckVersions(ctx context.Context, table, family string) error
}

// VersionKind is the kind of a version.
type VersionKind uint8

// Kinds of versions: a put, and markers. A marker hides puts also if they come after it.
const (
	PutVersion          VersionKind = iota // a value
	VersionMarker                          // hides the put of its column with its timestamp
	FamilyVersionMarker                    // hides all puts of the family with its timestamp
	ColumnMarker                           // hides all puts of its column up to its timestamp
	FamilyMarker                           // hides all puts of the family up to its timestamp
)

// Version is a put or a marker of a row's family.
type Version struct {
	Kind      VersionKind
	Qualifier []byte // empty for markers of the family
	Value     []byte
	Timestamp int64 // ms since 1970
}

// VersionRow is a row with all versions of one family, in no promised order.
type VersionRow struct {
	Key      []byte
	Versions []Version
}

// ConditionalChange is a change of one row's cells of one family.
type ConditionalChange struct {
	Row []byte
	If  Condition
	Put []Cell // with timestamps
	// Delete are single versions, by qualifier and timestamp. In addition a column that never
	// exists is deleted as of the server's time, so that a search for changes by timestamps finds
	// this one.
	Delete []Version
}

// Condition is what must be true of a row.
type Condition struct {
	// Stamps are timestamps: the row has a cell, and none with another timestamp.
	Stamps []int64
	// Columns is the least number of columns of the row: none of those that were read was deleted,
	// or as many were put. 0 requires nothing.
	Columns int
	// Cell, if not nil, is a cell that the row has: its column has this value.
	Cell *Cell
}
