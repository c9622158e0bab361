// Package guardtest tests that work under an aggregate.Guard ends with the guard's first error,
// whichever of its calls that is of.
package guardtest

import (
	"errors"
	"testing"
)

// Guard is an aggregate.Guard that counts. The zero value allows everything.
type Guard struct {
	Checks   int   // calls of Check
	Reserved int64 // bytes
	calls    int
	fails    int // the one call that fails, from 1; 0 is none
}

var errOver = errors.New("the guard has ended the work")

func (g *Guard) call() error {
	if g.calls++; g.calls == g.fails { // not the later ones: they would end work that has gone on
		return errOver
	}
	return nil
}

// Reserve counts n bytes.
func (g *Guard) Reserve(n int64) error {
	g.Reserved += n
	return g.call()
}

// Check is a step of the work.
func (g *Guard) Check() error {
	g.Checks++
	return g.call()
}

// EachCall does work under a guard that allows everything, and returns that guard. Then it does the work
// once for each of the guard's calls, which fails; the work must return its error.
func EachCall(t testing.TB, work func(*Guard) error) *Guard {
	t.Helper()
	all := &Guard{}
	if err := work(all); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= all.calls; n++ {
		if err := work(&Guard{fails: n}); !errors.Is(err, errOver) {
			t.Errorf("call %d of %d of the guard fails: got %v", n, all.calls, err)
		}
	}
	return all
}
