package exp

// Bounds are what computing the tables may take of its process.
type Bounds struct {
	// Reserve is called before memory is allocated, in bytes, and Release when memory is no longer
	// needed. The tables' memory stays reserved at the end.
	Reserve func(bytes int64) error
	Release func(bytes int64)
	// Check returns why the work should end, nil while it should not.
	Check func() error
	// Points is called with the number of values of an output before they are computed.
	Points func(n int) error
}

// ParsedBytes bounds the memory of a request for each byte of its body, read and parsed:
// the shortest parts of one are an output and an operator.
const ParsedBytes = 40

// begin checks whether to continue, and reserves memory for a column.
func (b Bounds) begin(bytes int64) error {
	if err := b.Check(); err != nil {
		return err
	}
	return b.Reserve(bytes)
}

// releaseTimes gives back a list of times if it is one that was made.
func (b Bounds) releaseTimes(times []int64, owned bool) {
	if owned {
		b.Release(int64(cap(times)) * 8)
	}
}
