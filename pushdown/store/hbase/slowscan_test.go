package hbase

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
)

// A write that ends while its server is being connected to was not sent: nothing waits for its reply.
func TestSlow_connecting(t *testing.T) {
	slowly(t, func(c *cluster) {
		c.PauseServer(1) // hbase:meta is at the other one
		ctx, cancel := context.WithTimeout(c.ctx, time.Second)
		defer cancel()
		wantError(t, c.st.Apply(ctx, "t", puts("a", "r00020")), store.ErrUnavailable)
		c.ResumeServer(1)
		began := time.Now()
		if err := c.st.Apply(c.ctx, "t", puts("a", "r00020")); err != nil || time.Since(began) > 10*time.Second {
			t.Errorf("again: %v after %v, want it soon", err, time.Since(began))
		}
	})
}

// Close waits for operations that have begun, and ends a call that its server does not even read.
func TestSlow_close(t *testing.T) {
	slowly(t, func(c *cluster) {
		if err := c.st.Apply(c.ctx, "t", puts("a", "r00020")); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			c.PauseServer(i)
			defer c.ResumeServer(i)
		}
		for range 3 {
			go func() {
				large := puts("a")
				large[0].Value = make([]byte, 1<<20)
				c.st.Apply(c.ctx, "t", large)
			}()
		}
		synctest.Wait()
		if err := c.st.life.Begin(); err != nil {
			t.Fatal(err)
		}
		closed := make(chan struct{})
		go func() {
			c.st.Close()
			close(closed)
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("closed during an operation")
		default:
		}
		ended := time.Now()
		c.st.life.Done()
		<-closed
		if took := time.Since(ended); took > 0 {
			t.Errorf("closed %v after the last operation", took)
		}
	})
}

// fillRows puts the first rows of a writer, of one cell each, and returns the cells.
func (c *cluster) fillRows(n int) (cells []string) {
	for i := range n {
		c.Put("t", string(row(0, i)), "t", "q", "v")
		cells = append(cells, string(row(0, i))+" q v")
	}
	return cells
}

// A scan goes on after a fault if the server was at work until then, even if no row came for long.
func TestSlow_heartbeats(t *testing.T) {
	slowlyOn(t, hbasefake.Options{Handlers: 3, MaxReplyCells: 9, HeartbeatEvery: 2}, func(c *cluster) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		c.ctx = ctx
		want := c.fillRows(9)
		for n := range 6 {
			c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
				if call.Method != "Scan" {
					return hbasefake.Fault{}
				}
				f := hbasefake.Fault{Delay: 40 * time.Second}
				if call.N == n {
					f.Kind, f.Exception = hbasefake.Refuse, moved
				}
				return f
			})
			c.mustRead(store.Scan{}, want)
		}
	})
}

// A scan whose first server is away begins once that is there. Nothing was interrupted, so that nothing is resumed.
func TestSlow_serverAwayAtFirst(t *testing.T) {
	slowly(t, func(c *cluster) {
		want := c.fillRows(20)
		away := 1 // hbase:meta is at the other one
		c.StopServer(away)
		time.AfterFunc(5*time.Second, func() {
			if err := c.RestartServer(away); err != nil {
				t.Error(err)
			}
		})
		began := time.Now()
		if stats := c.mustRead(store.Scan{}, want); stats.Resumes != 0 || time.Since(began) < 5*time.Second {
			t.Errorf("%+v after %v, want no resume after 5 s", stats, time.Since(began))
		}
	})
}

// A scanner is closed at its server as soon as no more is read of it, not when the caller gets to closing the scan.
func TestSlow_releases(t *testing.T) {
	slowlyOn(t, hbasefake.Options{Handlers: 3, MaxReplyCells: 2, Version: "1.7.2"}, func(c *cluster) {
		c.fillRows(9)
		released := func(when string) {
			synctest.Wait()
			if n := c.OpenScanners(); n != 0 {
				t.Errorf("%s: %d scanners are open, want none", when, n)
			}
		}

		// HBase 1 does not know how many rows are wanted.
		last := must(c.st.Scan(c.ctx, store.Scan{Table: "t", MaxRows: 3}))
		for read := 0; read < 3; {
			read += len(must(last.Next()))
		}
		released("at the last rows")

		ctx, cancel := context.WithCancel(c.ctx)
		cancelled := must(c.st.Scan(ctx, store.Scan{Table: "t"}))
		must(cancelled.Next())
		cancel()
		if _, err := cancelled.Next(); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		released("at the end of the context")

		closed := must(c.st.Scan(c.ctx, store.Scan{Table: "t"}))
		must(closed.Next())
		closed.Close()
		_, err := closed.Next()
		wantError(t, err, store.ErrClosed)
		released("at Close")

		c.st.Close()
		_, err = c.st.Scan(c.ctx, store.Scan{Table: "t"})
		wantError(t, err, store.ErrClosed)
	})
}

// The next rows are requested before the caller wants them. A scan that is cancelled returns none of them, even if they
// are there, and one that is closed ends at once.
func TestSlow_scanEnds(t *testing.T) {
	slowlyOn(t, hbasefake.Options{Handlers: 3, MaxReplyCells: 2}, func(c *cluster) {
		c.fillRows(9)
		ctx, cancel := context.WithCancel(c.ctx)
		sc := must(c.st.Scan(ctx, store.Scan{Table: "t"}))
		must(sc.Next())
		synctest.Wait()
		if n := c.Calls("Scan"); n != 2 {
			t.Errorf("%d calls, want the second one to be sent already", n)
		}
		cancel()
		rows, err := sc.Next()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %d rows, %v", len(rows), err)
		}
		sc.Close()

		c.SetHook(func(hbasefake.Call) hbasefake.Fault { return hbasefake.Fault{Delay: 5 * time.Second} })
		began := time.Now()
		closed := must(c.st.Scan(c.ctx, store.Scan{Table: "t"}))
		go func() {
			time.Sleep(time.Second)
			closed.Close()
		}()
		if _, err := closed.Next(); err == nil || time.Since(began) > 2*time.Second {
			t.Errorf("closed after a second: %v after %v", err, time.Since(began))
		}
		time.Sleep(9 * time.Second) // the server has opened the scanner
		if n := c.OpenScanners(); n != 0 {
			t.Errorf("%d scanners are open, want those closed that were opened behind our back", n)
		}
	})
}
