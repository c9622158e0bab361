package exp

import (
	"cmp"
	"slices"
	"unicode/utf16"
)

// hashOrder returns the indexes of variables in the order in which OpenTSDB walks them,
// which is that of Java's hash tables: the ids of an expression are in a HashSet, from
// there they are put into a HashMap that is made for as many.
// Source: ExpressionIterator, UnionIterator.
func hashOrder(variables []*variable) []int {
	order := make([]int, len(variables))
	for i := range order {
		order[i] = i
	}
	for _, slots := range []int{16, slotsFor(len(variables))} {
		for len(variables) > slots*3/4 { // both tables grow when they are three quarters full
			slots *= 2
		}
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Compare(slotOf(variables[a].id, slots), slotOf(variables[b].id, slots))
		})
	}
	return order
}

// slotsFor returns with how many slots a table for n entries begins.
func slotsFor(n int) int {
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
