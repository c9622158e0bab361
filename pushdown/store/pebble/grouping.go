package pebble

// Grouping divides the rows of a store into groups, by their keys. The store
// counts changes by group: the more groups a table has, the more finely
// version tokens distinguish changes of different rows. It also says how row keys are made. It is called for
// every row that is written, from many goroutines. encoding.RowHours is the one of OpenTSDB's tables.
type Grouping interface {
	// Group returns the group of a row: a prefix, which is a view of the key, and a
	// number. The numbers of rows with an equal prefix ascend with their keys. ok
	// is false for a row that has no group; a change of such a row counts as a
	// change of every range of its table.
	Group(row []byte) (prefix []byte, number uint32, ok bool)
	// Groups returns the groups of all rows in [start, stop) that have one: those
	// with the prefix and a number from first to last. ok is false if rows of more
	// than one prefix may be in the range; all changes count for it then.
	Groups(start, stop []byte) (prefix []byte, first, last uint32, ok bool)
	// Time returns the time that a row's data is of, in seconds since 1970. ok is
	// false if the key does not look like that of a row with a time. Only reports
	// of damage use it.
	Time(row []byte) (seconds uint32, ok bool)
	// Elements returns where the elements of row keys begin and the length of each, as
	// store.KeyPattern has them: Head, and NameLen and ValueLen together. A length of 0 says that
	// rows have no elements. It only decides which rows a scan need not look at.
	Elements() (head, width int)
}

// ungrouped is the Grouping of a store whose keys nothing is known about.
type ungrouped struct{}

func (ungrouped) Group([]byte) (prefix []byte, number uint32, ok bool) { return nil, 0, false }

func (ungrouped) Groups(_, _ []byte) (prefix []byte, first, last uint32, ok bool) {
	return nil, 0, 0, false
}

func (ungrouped) Time([]byte) (seconds uint32, ok bool) { return 0, false }

func (ungrouped) Elements() (head, width int) { return 0, 0 }
