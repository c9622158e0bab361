package seedtest

import (
	"flag"
	"fmt"
	"testing"
)

// Unset is the fixed seed, a number is itself, draw is a fresh one, and anything else ends the run.
func TestRead(t *testing.T) {
	draw := func() uint64 { return 77 }
	for value, want := range map[string]string{
		"":                     "1",
		"5":                    "5",
		"18446744073709551615": "18446744073709551615",
		"draw":                 "77",
		"0":                    `TEST_SEED: got "0", want a number from 1 to 2^64 - 1, or draw`,
		"-1":                   `TEST_SEED: got "-1", want a number from 1 to 2^64 - 1, or draw`,
		"1e3":                  `TEST_SEED: got "1e3", want a number from 1 to 2^64 - 1, or draw`,
	} {
		got := func() (got string) {
			defer func() {
				if r := recover(); r != nil {
					got = fmt.Sprint(r)
				}
			}()
			return fmt.Sprint(read(value, draw))
		}()
		if got != want {
			t.Errorf("%q: got %s, want %s", value, got, want)
		}
	}
	if seed := read("draw", func() uint64 { return 0 }); seed != 1 {
		t.Errorf("a draw of 0 gives %d, want 1: rapid takes 0 for none", seed)
	}
}

// logged is a test that keeps the last line it logs.
type logged struct {
	testing.TB
	line string
}

func (l *logged) Logf(format string, args ...any) { l.line = fmt.Sprintf(format, args...) }

// A test that draws logs the setting that repeats it.
func TestRand_logs(t *testing.T) {
	l := &logged{TB: t}
	Rand(l)
	if want := fmt.Sprintf("TEST_SEED=%d", seed); l.line != want {
		t.Errorf("logged %q, want %q", l.line, want)
	}
}

// Rapid draws with the same seed, and one test draws the same again and not what another draws.
func TestRand(t *testing.T) {
	if got, want := flag.Lookup("rapid.seed").Value.String(), fmt.Sprint(Of(t)); got != want {
		t.Errorf("rapid's seed is %s, want %s", got, want)
	}
	first := Rand(t).Uint64()
	if again := Rand(t).Uint64(); again != first {
		t.Errorf("drew %d and then %d, want the same", first, again)
	}
	t.Run("other", func(t *testing.T) {
		if other := Rand(t).Uint64(); other == first {
			t.Errorf("another test drew %d as well", other)
		}
	})
}
