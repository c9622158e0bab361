package size

import (
	"maps"
	"slices"
)

func sorted(lines map[string]func(cost) float64) []string { return slices.Sorted(maps.Keys(lines)) }
