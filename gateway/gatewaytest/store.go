package gatewaytest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"downpour/gateway"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
)

// Faulty is a store whose faults can be changed while a gateway runs on it.
type Faulty struct {
	gateway.Store
	now     atomic.Pointer[faultstore.Store]
	Judge   atomic.Pointer[func(store.Scan) error] // of every scan, if set
	Scans   atomic.Int64                           // open now
	Down    atomic.Bool                            // TableExists fails
	stopped atomic.Pointer[chan struct{}]          // writes wait until it is closed
	// after, if set, is called with the scan's context when a scan that has returned rows is asked
	// for more.
	After atomic.Pointer[func(context.Context) error]
}

// Features are those that the tests need.
func (f *Faulty) Features() store.Features {
	return store.Features{
		Versioner: f,
		Marker:    f,
		Watch:     f.Watch,
		Seal:      f.Store.Features().Seal,
	}
}

// TableExists fails while the store is down.
func (f *Faulty) TableExists(ctx context.Context, name string) (bool, error) {
	if f.Down.Load() {
		return false, fmt.Errorf("table %s: %w", name, store.ErrUnavailable)
	}
	return f.Store.TableExists(ctx, name)
}

// Set replaces all rules; without any the store is sound.
func (f *Faulty) Set(rules ...faultstore.Rule) *faultstore.Store {
	s := faultstore.New(f.Store, rules...)
	f.now.Store(s)
	return s
}

// Scan passes a scan on, unless Judge or a rule refuses it.
func (f *Faulty) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	if judge := f.Judge.Load(); judge != nil {
		if err := (*judge)(s); err != nil {
			return nil, err
		}
	}
	sc, err := f.now.Load().Scan(ctx, s)
	if err != nil {
		return nil, err
	}
	f.Scans.Add(1)
	return &counted{Scanner: sc, ctx: ctx, store: f, end: sync.OnceFunc(func() { f.Scans.Add(-1) })}, nil
}

// counted is a scanner that is counted in Faulty.Scans until it is closed.
type counted struct {
	store.Scanner
	ctx   context.Context
	store *Faulty
	rows  bool // some were returned
	end   func()
}

func (c *counted) Next() ([]store.Row, error) {
	if after := c.store.After.Load(); after != nil && c.rows {
		if err := (*after)(c.ctx); err != nil {
			return nil, err
		}
	}
	rows, err := c.Scanner.Next()
	c.rows = c.rows || len(rows) > 0
	return rows, err
}

func (c *counted) Close() error {
	c.end()
	return c.Scanner.Close()
}

// Watch passes on.
func (f *Faulty) Watch(table string, ranges []store.KeyRange, changed func()) (store.Watch, error) {
	return f.Store.Features().Watch(table, ranges, changed)
}

// Get passes on, unless Judge or a rule refuses it.
func (f *Faulty) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	if judge := f.Judge.Load(); judge != nil {
		if err := (*judge)(store.Scan{Table: table, Family: family}); err != nil {
			return nil, err
		}
	}
	return f.now.Load().Get(ctx, table, family, keys)
}

// Version passes on, unless a rule refuses it.
func (f *Faulty) Version(ctx context.Context, table, family string,
	r store.KeyRange) (token string, proof func() error, err error) {
	return f.now.Load().Features().Versioner.Version(ctx, table, family, r)
}

// Mark passes on.
func (f *Faulty) Mark(ctx context.Context, table, family string, r store.KeyRange) (store.Mark, error) {
	return f.Store.Features().Marker.Mark(ctx, table, family, r)
}

// Unchanged passes on.
func (f *Faulty) Unchanged(ctx context.Context, table, family string, r store.KeyRange, mark string) error {
	return f.Store.Features().Marker.Unchanged(ctx, table, family, r, mark)
}

// Apply passes on what it may write.
func (f *Faulty) Apply(ctx context.Context, table string, m []store.Mutation) error {
	if err := f.write(ctx); err != nil {
		return err
	}
	return f.now.Load().Apply(ctx, table, m)
}

// Increment passes on what it may write.
func (f *Faulty) Increment(ctx context.Context, table string, cell store.CellKey, delta int64) (int64, error) {
	if err := f.write(ctx); err != nil {
		return 0, err
	}
	return f.now.Load().Increment(ctx, table, cell, delta)
}

// CompareAndPut passes on what it may write.
func (f *Faulty) CompareAndPut(ctx context.Context, table string, cell store.CellKey, old, value []byte) (bool, error) {
	if err := f.write(ctx); err != nil {
		return false, err
	}
	return f.now.Load().CompareAndPut(ctx, table, cell, old, value)
}

// StopWriting makes all that writes wait until answer is called, or the call's time is over.
func (f *Faulty) StopWriting() (answer func()) {
	stopped := make(chan struct{})
	f.stopped.Store(&stopped)
	return sync.OnceFunc(func() { f.stopped.Store(nil); close(stopped) })
}

// write waits while writes are stopped.
func (f *Faulty) write(ctx context.Context) error {
	stopped := f.stopped.Load()
	if stopped == nil {
		return nil
	}
	select {
	case <-*stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// NewFaulty returns a store without faults.
func NewFaulty(st gateway.Store) *Faulty {
	f := &Faulty{Store: st}
	f.Set()
	return f
}
