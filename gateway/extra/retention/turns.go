package retention

import (
	"context"
	"sync"
)

// Turns give the work to one worker at a time. That only spares the store: a run is right if others
// work at once.
type Turns interface {
	// Take waits until it is the caller's turn.
	Take(ctx context.Context) (Turn, error)
	// Try does not wait; ok is false while it is another one's.
	Try(ctx context.Context) (t Turn, ok bool, err error)
}

// Turn is the right to work, and what the last worker has saved.
type Turn interface {
	// Context ends when the turn is lost, or released.
	Context() context.Context
	// State is what was saved last, nil if nothing was.
	State() []byte
	Save(ctx context.Context, state []byte) error
	Release(ctx context.Context) error
}

// Local are the turns within one process, which has the store for itself. They are there when
// the disk is full, too.
type Local struct {
	busy chan struct{} // has an element while it is somebody's turn

	mu    sync.Mutex
	state []byte
}

// NewLocal returns turns that nobody has.
func NewLocal() *Local { return &Local{busy: make(chan struct{}, 1)} }

// Take implements Turns.
func (l *Local) Take(ctx context.Context) (Turn, error) {
	select {
	case l.busy <- struct{}{}:
		return l.begin(ctx), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Try implements Turns.
func (l *Local) Try(ctx context.Context) (t Turn, ok bool, err error) {
	select {
	case l.busy <- struct{}{}:
		return l.begin(ctx), true, nil
	default:
		return nil, false, ctx.Err()
	}
}

func (l *Local) begin(ctx context.Context) *localTurn {
	t := &localTurn{of: l}
	t.ctx, t.cancel = context.WithCancel(ctx)
	return t
}

// localTurn is a turn of Local.
type localTurn struct {
	of     *Local
	ctx    context.Context
	cancel context.CancelFunc
	once   sync.Once
}

func (t *localTurn) Context() context.Context { return t.ctx }

func (t *localTurn) State() []byte {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	return t.of.state
}

func (t *localTurn) Save(_ context.Context, state []byte) error {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.of.state = state
	return nil
}

func (t *localTurn) Release(context.Context) error {
	t.once.Do(func() {
		t.cancel()
		<-t.of.busy
	})
	return nil
}
