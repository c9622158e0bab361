package store

// Watcher is a store that can tell which rows change. The embedded store is one:
// all writes of its tables pass through it. HBase is none.
type Watcher interface {
	// Watch begins to collect what is written to rows in any of ranges (in any
	// order, they may overlap) from now on. A write is in the collection once it
	// can be read and not before; one that could be read when Watch returned need
	// not be, and one that could be read when it was called is not. changed, if
	// not nil, is called when there may be something to take, by whoever writes:
	// it must not block.
	Watch(table string, ranges []KeyRange, changed func()) (Watch, error)
}

// Watch collects changes of rows. It is bounded: beyond the bound it forgets
// them and remembers only that it has. Its methods may be called from any
// goroutine.
type Watch interface {
	// Take returns what was collected since the last call, in no order, each row
	// once. lost tells that there was too much to keep: any row of the ranges may
	// have changed, and rows is empty.
	Take() (rows []Change, lost bool)
	// Close ends the collecting. It may be called again.
	Close()
}

// Change is what was written to a row between two calls of Take. It is shared:
// nothing in it may be changed.
type Change struct {
	Row []byte
	// Writes are the changes of the row's cells, without Row. Those of one call
	// of Apply stand in its order; calls that ran at the same time may be told in
	// another order than the one in which they became visible, and a write that
	// became visible first may be told by a later Take.
	Writes []Mutation
	// Cut tells that Writes is not all: the row must be read.
	Cut bool
}
