package completion

import (
	"slices"
	"strings"
)

// ListOf is a list of names.
func ListOf(names []string) *list {
	slices.Sort(names)
	all := make([]name, len(names))
	for i, text := range names {
		all[i].text = text
	}
	return newList(all)
}

// Search searches a list.
func Search(l *list, text string, most int) int {
	m := &matches{most: most}
	l.search(strings.Fields(fold(text)), m)
	return m.total
}
