package javahash

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Orders that a HashMap of Java 17 has, walked after the keys were put in this order.
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
	// "Aa" and "BB" have one hash: the one that was put first comes first.
	f(Slots, []string{"Aa", "BB"}, "Aa", "BB")
	f(Slots, []string{"BB", "Aa"}, "BB", "Aa")
	// The hashes of "p" and "d" end in the same two bits and differ in the third: of the four
	// slots of a table for one key, grown for the second, they have the same.
	f(1, []string{"p", "d"}, "p", "d")
	f(SlotsFor(1), []string{"d", "p"}, "d", "p")
	f(SlotsFor(5), []string{"p", "d"}, "d", "p")
}
