package store

// Watcher is a store that can tell which rows change. The embedded store is one:
// all writes of its tables pass through it. HBase is none.
type Watcher interface {
	// Watch begins to collect the keys of rows in any of ranges (in any order,
	// they may overlap) that are written or deleted from now on. A write is in
	// the collection once it can be read and not before; one that could be read
	// when Watch returned need not be. changed, if not nil, is called when there
	// may be something to take, by whoever writes: it must not block.
	Watch(table string, ranges []KeyRange, changed func()) (Watch, error)
}

// Watch collects the keys of changed rows. It is bounded: beyond the bound it
// forgets the keys and remembers only that it has. Its methods may be called
// from any goroutine.
type Watch interface {
	// Take returns the keys collected since the last call, in no order, each
	// once. lost tells that there were too many to keep: any row of the ranges
	// may have changed, and rows is empty.
	Take() (rows [][]byte, lost bool)
	// Close ends the collecting. It may be called again.
	Close()
}
