package aggregate

// Guard bounds the memory of pure code and ends it with its request, so that this code needs no
// clock and no context. One goroutine uses a guard at a time.
type Guard interface {
	// Reserve is called before n bytes are allocated. Its error ends the work.
	Reserve(n int64) error
	// Check is called at least every 100,000 steps or so. Its error ends the work.
	Check() error
}

// Unguarded is a Guard that allows everything.
type Unguarded struct{}

// Reserve allows everything.
func (Unguarded) Reserve(int64) error { return nil }

// Check never ends the work.
func (Unguarded) Check() error { return nil }
