package aggregate

// Guard lets pure code keep within the memory of its process and end when its
// request does, though it knows no clock and no context. One goroutine uses a guard
// at a time.
type Guard interface {
	// Reserve is asked before n bytes are allocated. Its error ends the work.
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
