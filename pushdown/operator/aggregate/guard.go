package aggregate

// Guard stands between a calculation and the process that it runs in, so that
// pure code keeps within the process's memory and ends when its request does,
// and yet knows neither clock nor context. One goroutine uses a guard at a time.
type Guard interface {
	// Reserve is asked before n bytes are allocated. Its error ends the work.
	Reserve(n int64) error
	// Check is asked again and again, at the latest after some 100,000 steps. Its
	// error ends the work.
	Check() error
}

// Unguarded lets a calculation take what it needs.
type Unguarded struct{}

// Reserve allows everything.
func (Unguarded) Reserve(int64) error { return nil }

// Check never ends the work.
func (Unguarded) Check() error { return nil }
