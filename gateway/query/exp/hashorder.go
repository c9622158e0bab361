package exp

import "downpour/gateway/query/javahash"

// hashOrder returns the indexes of variables in the order in which OpenTSDB walks them,
// which is that of Java's hash tables: the ids of an expression are in a HashSet, from
// there they are put into a HashMap that is made for as many.
// Source: ExpressionIterator, UnionIterator.
func hashOrder(variables []*variable) []int {
	order := make([]int, len(variables))
	for i := range order {
		order[i] = i
	}
	id := func(i int) string { return variables[i].id }
	javahash.Sort(order, id, javahash.Slots)
	javahash.Sort(order, id, javahash.SlotsFor(len(variables)))
	return order
}
