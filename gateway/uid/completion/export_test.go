package completion

import (
	"slices"
	"strings"
)

// ListOf is a list of names.
func ListOf(names []string) *list {
	slices.Sort(names)
	return newList(names)
}

// Search searches a list.
func Search(l *list, text string, most int) int {
	m := &matches{most: most}
	l.search(strings.Fields(fold(text)), m)
	return m.total
}
