package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Known is an error for the first name of a list that is none of those that there are.
func Known(list string, names, there []string) error {
	for _, name := range names {
		if !slices.Contains(there, name) {
			return fmt.Errorf("%s: got %q, want some of %s", list, name, strings.Join(there, ", "))
		}
	}
	return nil
}

// Positive is an error for the first number, by its name, that is below 1.
func Positive(numbers map[string]int) error {
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		if numbers[name] < 1 {
			return fmt.Errorf("%s: got %d, want at least 1", name, numbers[name])
		}
	}
	return nil
}
