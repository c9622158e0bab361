// Package e2etest is what test binaries with real servers share: one HBase for
// all tests of a binary, tables of their own for each test, time limits that
// suit a busy machine, and processes that end with their test.
//
// A test binary calls Run in its TestMain, so that the HBase ends with it. Every
// binary that imports the package knows the flag -soak.
package e2etest

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"downpour/integration/e2e"
)

// Soak is a flag of every test binary with real servers, behind -args.
var Soak = flag.Bool("soak", false, "run the long forms of the tests that have one")

// Run runs the tests of a binary and ends the shared HBase, if a test has
// started it. It returns the exit status. The logs of HBase are kept if a test
// has failed.
func Run(m *testing.M) int {
	flag.Parse()
	code := m.Run()

	if started == nil {
		return code
	}
	if err := endHBase(started, code != 0); err != nil {
		fmt.Println(err)
		return 1
	}
	return code
}

// sharedHBase starts the one cluster of this test binary at its first call.
var sharedHBase = sync.OnceValues(func() (*e2e.HBase, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()

	began := time.Now()
	h, err := e2e.StartHBase(ctx, e2e.HBaseOptions{QuickStart: !*Soak})
	if err != nil {
		return nil, err
	}

	fmt.Printf("HBase, master and %d region servers: up after %.1f s\n", h.Len(), time.Since(began).Seconds())
	started = h
	return h, nil
})

// started is the cluster of sharedHBase, for Run to end it.
var started *e2e.HBase

func endHBase(h *e2e.HBase, keepLogs bool) error {
	if !keepLogs {
		return h.Close()
	}
	logs, err := h.CloseKeeping()
	fmt.Println("HBase logs kept in", logs)
	return err
}

// HBase returns the cluster that all tests of the binary share; they keep apart
// by tables of their own. A test that harms servers starts a cluster of its own.
func HBase(t testing.TB) *e2e.HBase {
	t.Helper()
	h, err := sharedHBase()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

var tableSets atomic.Int64

// CreateTables makes the four tables of OpenTSDB on the shared HBase, empty and
// with names that no other test has. The data table is split at the keys given.
func CreateTables(t testing.TB, splits ...[]byte) e2e.Tables {
	t.Helper()
	tables := e2e.TablesWithPrefix(fmt.Sprintf("t%d", tableSets.Add(1)))
	if err := HBase(t).Admin.CreateOpenTSDBTables(Within(t, time.Minute), tables, splits...); err != nil {
		t.Fatal(err)
	}
	return tables
}

// Busy is how many times longer than expected a step may take: a machine that
// has much else to do is no fault of what is tested.
const Busy = 6

// Within returns a context that ends with the test, or after Busy times d.
func Within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Busy*d)
	t.Cleanup(cancel)
	return ctx
}

// Must returns a function that passes a value on and ends the test at an error:
// of a step that the test is not about.
func Must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Process is what every process that a test starts can do.
type Process interface {
	// Close ends it and removes its files.
	Close() error
	// CloseKeeping ends it and returns the directory in which its files stay.
	CloseKeeping() (string, error)
}

// CloseAtEnd ends a process with the test, and keeps its files if the test failed.
func CloseAtEnd(t testing.TB, p Process) {
	t.Cleanup(func() {
		if !t.Failed() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			return
		}

		files, err := p.CloseKeeping()
		t.Logf("files kept in %s, close error %v", files, err)
	})
}
