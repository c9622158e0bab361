package meta

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"downpour/encoding"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
)

// listener records the series that it gets.
type listener struct {
	mu    sync.Mutex
	told  [][]string
	fails int // the next so many calls fail and ask for their series again
}

func (l *listener) described(_ context.Context, tsuids []string) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tsuids = slices.Sorted(slices.Values(tsuids))
	l.told = append(l.told, tsuids)
	if l.fails > 0 {
		l.fails--
		return tsuids, store.ErrUnavailable
	}
	return nil, nil
}

func tsuid(n int) string {
	return string(encoding.DefaultSchema().AppendTSUID(nil, rowKey(n)))
}

// Each series that gets a TSMeta is passed to Described once, and again with each Flush as long
// as Described asks for it, also if no other series comes.
func TestTracker_described(t *testing.T) {
	s := open(t)
	l := &listener{fails: 2}
	start := func(st store.Store, flags Flags) *Tracker {
		return NewTracker(TrackerConfig{Config: catalogConfig(st), Flags: flags, Described: l.described})
	}
	tr := start(s, all)
	tr.Stored(rowKey(1), 1)
	tr.Stored(rowKey(2), 1)
	if err := tr.Flush(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want that the store is unavailable", err)
	}
	tr.Stored(rowKey(1), 1)
	tr.Stored(rowKey(3), 1)
	_ = tr.Flush(t.Context())
	for range 2 {
		if err := tr.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
	// For another process they are not new.
	for _, flags := range []Flags{all, {Tracking: true, RealtimeTS: true}, {Tracking: true}} {
		other := start(s, flags)
		other.Stored(rowKey(1), 1)
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}

	three := []string{tsuid(1), tsuid(2), tsuid(3)}
	want := [][]string{three[:2], three, three}
	if !slices.EqualFunc(l.told, want, slices.Equal) {
		t.Errorf("told of %x, want %x", l.told, want)
	}
}

// A tracker that nobody wants to know of keeps no series for it; from OnDescribed on it passes them.
func TestTracker_onDescribed(t *testing.T) {
	tr := NewTracker(TrackerConfig{Config: catalogConfig(open(t)), Flags: all})
	l := &listener{}
	tr.Stored(rowKey(1), 1)
	if err := tr.Flush(t.Context()); err != nil || len(tr.described) != 0 {
		t.Errorf("%d series are kept, %v, want none", len(tr.described), err)
	}
	tr.OnDescribed(l.described)
	tr.Stored(rowKey(2), 1)
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
	if want := [][]string{{tsuid(2)}}; !slices.EqualFunc(l.told, want, slices.Equal) {
		t.Errorf("passed %x, want %x", l.told, want)
	}
}

// A series is passed to Described also if the store reported an error although it had stored
// the TSMeta.
func TestTracker_describedLater(t *testing.T) {
	l := &listener{}
	st := faultstore.New(open(t), faultstore.Rule{
		Op:    faultstore.CompareAndPut,
		Nth:   1,
		Err:   store.ErrUnavailable,
		After: true,
	})
	tr := NewTracker(TrackerConfig{Config: catalogConfig(st), Flags: all, Described: l.described})
	tr.Stored(rowKey(7), 1)
	if err := tr.Flush(t.Context()); err == nil {
		t.Error("the store did not fail")
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
	if want := [][]string{{tsuid(7)}}; !slices.EqualFunc(l.told, want, slices.Equal) {
		t.Errorf("told of %x, want %x", l.told, want)
	}
}

// The number of series that wait to be passed to Described again is bounded.
func TestTracker_describedBounds(t *testing.T) {
	l := &listener{fails: 1000}
	tr := NewTracker(TrackerConfig{
		Config: catalogConfig(open(t)), Flags: all, Described: l.described, Bytes: 10 * (seenBytes + len(tsuid(0))),
	})
	for n := range 50 {
		tr.Stored(rowKey(n), 1)
		_ = tr.Flush(t.Context())
	}
	if n := len(l.told[len(l.told)-1]); n != 10 {
		t.Errorf("%d series wait, want 10", n)
	}
	l.fails = 0
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
}
