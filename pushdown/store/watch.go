package store

// Watch collects changes of rows. It is bounded: beyond the bound it drops what it has
// collected and reports only that. Its methods may be called from any goroutine.
type Watch interface {
	// Take returns what was collected since the last call, each row once, in no
	// particular order. lost is set if there was too much to keep: any row of the
	// ranges may have changed, and rows is empty.
	Take() (rows []Change, lost bool)
	// Close ends the collection. It may be called again.
	Close()
}

// Change is what was written to a row between two calls of Take. Its memory is shared,
// so nothing in it may be changed.
type Change struct {
	Row []byte
	// Writes are the changes of the row's cells, without Row. Those of one call of
	// Apply are in its order. Those of calls that ran at the same time may be in
	// another order than the one in which they became visible, and a write that
	// became visible first may come with a later Take.
	Writes []Mutation
	// Cut is set if Writes is incomplete: the row must be read.
	Cut bool
}
