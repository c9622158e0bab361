package fsck

// Kind is a kind of finding.
type Kind uint8

// What can be wrong. The last four are no errors: queries read the row as it is.
const (
	BadKey         Kind = iota // no row of a series has a key of this length
	Orphan                     // a UID of the key has no name
	UnknownColumn              // a qualifier that no version of OpenTSDB writes
	BadCompact                 // a compacted cell or append column that cannot be read
	FixableCompact             // a compacted cell or append column that can be read, in the wrong order or place
	BadValue                   // a point that cannot be read
	WrongWidth                 // a value of another length than its qualifier says; queries read it by its length
	FloatEncoding              // a 4-byte float with four bytes before it
	Duplicate                  // several values of one time
	OffHourRow                 // a row whose base time is no full hour
	FutureColumn               // perhaps an object of a later OpenTSDB
	LongInteger                // an integer on 8 bytes that fits fewer
	Uncompacted                // a row that is not one cell, with Options.Compact
	LooseAppends               // an append column out of order or with values written over, with Options.Compact
	kinds
)

// kindTexts are a kind's name in findings, and its counters, which are OpenTSDB's where
// it has them. Source: Fsck.logResults.
var kindTexts = [kinds]struct{ name, found, repaired string }{
	BadKey:         {"bad row key", "Invalid Row Keys Found", "Invalid Rows Deleted"},
	Orphan:         {"orphan", "Orphaned UID Rows", "Orphaned UID Rows Deleted"},
	UnknownColumn:  {"unknown column", "Unknown Objects", "Unknown Objects Deleted"},
	BadCompact:     {"bad compacted column", "Unparseable Compacted Columns", "Unparseable Compacted Columns Deleted"},
	FixableCompact: {"compacted column to be fixed", "Compacted Columns to be Fixed", "Compacted Columns Fixed"},
	BadValue:       {"bad value", "Unparseable Datapoint Values", "Unparseable Datapoint Values Deleted"},
	WrongWidth:     {"wrong length", "Datapoint Values of Another Length", "Datapoint Values of Another Length Fixed"},
	FloatEncoding: {"badly encoded float", "Improperly Encoded Floating Point Values",
		"Improperly Encoded Floating Point Values Fixed"},
	Duplicate:    {"duplicate", "Duplicate Datapoints", "Duplicate Datapoints Resolved"},
	OffHourRow:   {"row of no full hour", "Rows of No Full Hour", "Rows of No Full Hour Moved"},
	FutureColumn: {"possible future object", "Possible Future Objects", ""},
	LongInteger:  {"long integer", "Datapoints Qualified for VLE", "Datapoints Compressed with VLE"},
	Uncompacted:  {"uncompacted", "Rows to be Compacted", "Rows Compacted"},
	LooseAppends: {"loose appends", "Append Columns to be Sorted", "Append Columns Sorted"},
}

// Kinds returns all kinds, in the order in which they are reported.
func Kinds() []Kind {
	all := make([]Kind, kinds)
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

// String is the kind's name.
func (k Kind) String() string { return kindTexts[k].name }

// Counters returns the names of the counters of what is found and of what is repaired,
// the second "" if nothing repairs the kind.
func (k Kind) Counters() (found, repaired string) { return kindTexts[k].found, kindTexts[k].repaired }

// IsError reports whether a row with such a finding is damaged.
func (k Kind) IsError() bool { return k < FutureColumn }

// Finding is one thing that is wrong with a row.
type Finding struct {
	Kind  Kind
	Count int // of values: what the counters count
	// Qualifier names the cell, nil if the finding is about the row.
	Qualifier []byte
	// What is wrong.
	What string
	// Remedy is what a repair does, "" if nothing can be done. Flags are those that
	// allow it.
	Remedy, Flags string
	// Planned is set if the repair of the row does it. Otherwise Left says why not,
	// although the options allow it; it is "" if they do not.
	Planned bool
	Left    string

	needs permission
	way   way
}

// way is what has to be written as a whole for a finding to be repaired, none if a cell
// of its own is written or deleted.
type way uint8

const (
	folding   way = 1 << iota // the row's points become one cell
	appending                 // the row's append column is rewritten
)
