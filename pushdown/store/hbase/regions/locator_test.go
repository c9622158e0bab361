package regions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"downpour/pushdown/store/hbase/calls"
)

// waiting is a directory that answers once it is closed.
type waiting struct {
	lookUps atomic.Int64
	answer  chan struct{}
}

func (d *waiting) lookUp(role) (string, error) {
	d.lookUps.Add(1)
	<-d.answer
	return "s:1", nil
}

// All that want an address while it is looked up wait for that look-up, or for the end of their contexts.
func TestLocator_shared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life := calls.NewLife()
		d := &waiting{answer: make(chan struct{})}
		l := newLocator(life, d)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if addr, err := l.address(t.Context(), metaServer); addr != "s:1" || err != nil {
					t.Errorf("got %q, %v", addr, err)
				}
			})
		}
		synctest.Wait()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if addr, err := l.address(ended, metaServer); !errors.Is(err, context.Canceled) {
			t.Errorf("got %q, %v, want the end of the wait", addr, err)
		}
		close(d.answer)
		all.Wait()
		if n := d.lookUps.Load(); n != 1 {
			t.Errorf("%d look-ups, want 1", n)
		}
		life.End()
		life.Wait()
	})
}

// counting is a directory that gives another address at each look-up, and none at the first.
type counting struct{ lookUps int }

func (d *counting) lookUp(role) (string, error) {
	if d.lookUps++; d.lookUps == 1 {
		return "wrong:1", errZooKeeper
	}
	return fmt.Sprintf("s:%d", d.lookUps), nil
}

// An address is looked up once, and again after a fault or once it is forgotten. One that comes late to
// forget an address does not take the newer one away.
func TestLocator(t *testing.T) {
	life := calls.NewLife()
	l := newLocator(life, &counting{})
	address := func() string {
		addr, err := l.address(t.Context(), metaServer)
		if err != nil {
			return err.Error()
		}
		return addr
	}
	var got []string
	got = append(got, address(), address(), address())
	l.forget(metaServer, "s:2")
	got = append(got, address())
	l.forget(metaServer, "s:2")
	got = append(got, address())
	if want := []string{"ZooKeeper", "s:2", "s:2", "s:3", "s:3"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
	life.End()
	life.Wait()
}
