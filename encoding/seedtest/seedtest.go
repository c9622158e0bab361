// Package seedtest has the seed of everything that tests draw: generators, shuffles, samples,
// faults and the checks of pgregory.net/rapid.
//
// The environment variable TEST_SEED sets it:
//
//	TEST_SEED unset   1: the same draws for everybody
//	TEST_SEED=N       N, a number from 1 to 2^64 - 1: what a failure printed
//	TEST_SEED=draw    a fresh one for each test binary, as soak draws it
//
// A test that uses the seed logs it, so that a failure shows how to repeat it. A
// package that uses rapid and no other draw imports this package for its effect on
// rapid alone:
//
//	import _ "downpour/encoding/seedtest"
package seedtest

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	_ "pgregory.net/rapid" // registers the flag that init sets
)

// Fixed is the seed of tests unless TEST_SEED names another.
const Fixed = 1

// Variable is the name of the environment variable.
const Variable = "TEST_SEED"

var seed = read(os.Getenv(Variable), rand.Uint64)

// init gives rapid the seed. A flag -rapid.seed on the command line still wins, because flags are
// parsed later.
func init() {
	if err := flag.Set("rapid.seed", strconv.FormatUint(seed, 10)); err != nil {
		panic(err) // rapid has no such flag any more
	}
}

// read returns the seed that a value of the variable means. An invalid value is a panic: tests must
// not run with another seed than the one requested.
func read(value string, draw func() uint64) uint64 {
	switch value {
	case "":
		return Fixed
	case "draw":
		return max(1, draw()) // rapid takes 0 for none
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil || n == 0 {
		panic(fmt.Sprintf("%s: got %q, want a number from 1 to 2^64 - 1, or draw", Variable, value))
	}
	return n
}

// Of returns the seed, and logs it as the setting that repeats it.
func Of(t testing.TB) uint64 {
	t.Helper()
	t.Logf("%s=%d", Variable, seed)
	return seed
}

// Rand returns a generator of the seed and the test's name, so that two tests draw different things.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	name := fnv.New64a()
	name.Write([]byte(t.Name()))
	return rand.New(rand.NewPCG(Of(t), name.Sum64()))
}
