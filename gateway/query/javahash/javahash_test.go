package javahash

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Sort gives the order in which a HashMap of Java 17 is iterated after keys were put in the given
// order.
func TestSort(t *testing.T) {
	f := func(slots int, want []string, keys ...string) {
		t.Helper()
		Sort(keys, func(k string) string { return k }, slots)
		if diff := cmp.Diff(want, keys); diff != "" {
			t.Errorf("want -, got +: %s", diff)
		}
	}
	f(Slots, []string{"host", "dc"}, "dc", "host")
	f(Slots, []string{"a", "b", "c"}, "c", "b", "a")
	// "Aa" and "BB" have the same hash: the one that was put first comes first.
	f(Slots, []string{"Aa", "BB"}, "Aa", "BB")
	f(Slots, []string{"BB", "Aa"}, "BB", "Aa")
	// The hashes of "p" and "d" have the same last two bits and differ in the third: they share a
	// slot in a table of up to four slots, and not in a larger one.
	f(1, []string{"p", "d"}, "p", "d")
	f(SlotsFor(1), []string{"d", "p"}, "d", "p")
	f(SlotsFor(5), []string{"p", "d"}, "d", "p")
}
