//go:build integration

package integration

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"downpour/integration/e2e"
)

var (
	soak     = flag.Bool("soak", false, "run the long forms of the tests that have one")
	seedFlag = flag.Uint64("seed", 0, "seed of what is random in tests of several servers; 0 draws one")
)

// sharedHBase is the one cluster of this test binary; tests keep apart by
// tables of their own. A test that harms servers starts a cluster of its own.
var sharedHBase = sync.OnceValues(func() (*e2e.HBase, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	began := time.Now()
	h, err := e2e.StartHBase(ctx, e2e.HBaseOptions{})
	if err == nil {
		fmt.Printf("HBase, master and %d region servers: up after %.1f s\n", h.Len(), time.Since(began).Seconds())
		started = h
	}
	return h, err
})

// started is set once sharedHBase runs, for TestMain to end it.
var started *e2e.HBase

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if started != nil {
		if err := endHBase(started, code != 0); err != nil {
			fmt.Println(err)
			code = 1
		}
	}
	os.Exit(code)
}

func endHBase(h *e2e.HBase, keepLogs bool) error {
	if !keepLogs {
		return h.Close()
	}
	logs, err := h.CloseKeeping()
	fmt.Println("HBase logs kept in", logs)
	return err
}

// busy is how much longer than d a test may take: a machine that has much else to
// do is no fault of what is tested.
const busy = 3

// within returns a context that ends with the test or long after d.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), busy*d)
	t.Cleanup(cancel)
	return ctx
}

// hbase returns the shared cluster.
func hbase(t *testing.T) *e2e.HBase {
	t.Helper()
	h, err := sharedHBase()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// must ends the test at an error of a step that the test is not about.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// closer is what every process that a test starts can do.
type closer interface {
	Close() error
	CloseKeeping() (string, error)
}

// closeAtEnd ends a process with the test and keeps its files if that failed.
func closeAtEnd(t *testing.T, c closer) {
	t.Cleanup(func() {
		if !t.Failed() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			return
		}
		files, err := c.CloseKeeping()
		t.Logf("files kept in %s, close error %v", files, err)
	})
}
