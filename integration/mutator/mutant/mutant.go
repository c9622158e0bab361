// Package mutant switches faults on that command mutator has put into a copy of the sources. One
// program has all faults of a package in it; the variable MUTANT is the number of the one that is
// on, from 1.
package mutant

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
)

// Variables of the environment: the number of the fault that is on, and the file to which the
// numbers of faults that are reached are written, a line each.
const (
	Variable = "MUTANT"
	Reached  = "MUTANT_REACHED"
)

var (
	on, _   = strconv.Atoi(os.Getenv(Variable))
	reached = open(os.Getenv(Reached))
	seen    [1 << 16]atomic.Bool // by number
)

func open(name string) *os.File {
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	return f
}

// On reports whether a fault is on.
func On(id int) bool {
	if reached != nil {
		reach(id)
	}
	return id == on
}

// reach is not part of On, which is called in the innermost loops and so must be inlined.
func reach(id int) {
	if !seen[id].Load() && !seen[id].Swap(true) {
		fmt.Fprintln(reached, id)
	}
}

// Pick returns right, or wrong if the fault is on.
func Pick[T any](id int, right, wrong T) T {
	if On(id) {
		return wrong
	}
	return right
}

// Err returns err, or nil if the fault is on.
func Err(id int, err error) error {
	if On(id) {
		return nil
	}
	return err
}
