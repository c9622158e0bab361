// Package javahash knows the order in which Java walks the keys of its hash tables.
// OpenTSDB prints several things in that order.
package javahash

import (
	"cmp"
	"slices"
	"unicode/utf16"
)

// Slots is with how many slots a table begins that is made without a size.
// Source: HashMap.DEFAULT_INITIAL_CAPACITY (Java).
const Slots = 16

// Sort sorts a list, whose order is that in which the keys were put into a table, into the
// order in which the table is walked. slots is with how many the table begins, a power of
// two. It knows no table so full of collisions that Java makes trees of its slots.
// Source: HashMap (Java).
func Sort[E any](list []E, key func(E) string, slots int) {
	for len(list) > slots*3/4 { // a table grows when it is three quarters full
		slots *= 2
	}
	slices.SortStableFunc(list, func(a, b E) int {
		return cmp.Compare(slotOf(key(a), slots), slotOf(key(b), slots))
	})
}

// SlotsFor returns with how many slots a table for n keys begins.
// Source: HashMap.tableSizeFor (Java).
func SlotsFor(n int) int {
	slots := 1
	for slots < n {
		slots *= 2
	}
	return slots
}

// slotOf returns a key's slot. Source: String.hashCode, HashMap.hash (Java).
func slotOf(key string, slots int) int {
	h := uint32(0)
	for _, c := range utf16.Encode([]rune(key)) {
		h = 31*h + uint32(c)
	}
	return int(h^h>>16) & (slots - 1)
}
