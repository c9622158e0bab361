package compare

import "slices"

// Permit is one line of the table of permitted differences.
type Permit struct {
	// Path is a pattern over the steps of a Path: "*" stands for any one step,
	// "**" for any number of them, none included.
	Path Path

	// Kinds that are permitted there; empty means all.
	Kinds []Kind

	// Reason says why a client cannot depend on it.
	Reason string
}

// Standard is the table for every comparison with a real OpenTSDB.
var Standard = []Permit{
	{Path: Path{"error", "details"}, Reason: "quotes Java classes and objects of the server's inside"},
	{Path: Path{"error", "trace"}, Reason: "a Java stack trace"},
	{Path: Path{"**", "created"}, Kinds: []Kind{Value}, Reason: "the second in which meta data was made"},
	{Path: Path{"**", "time"}, Kinds: []Kind{Value}, Reason: "how long a search took"},
}

// ours is the table of what we answer in addition, for every comparison.
var ours = []Permit{
	{
		Path: Path{"error", "suggestions"}, Kinds: []Kind{Extra},
		Reason: "names that may be meant by one that does not exist",
	},
}

// permits returns the reason of the first line that allows d.
func permits(table []Permit, d Difference) (reason string, ok bool) {
	for _, p := range slices.Concat(table, ours) {
		if len(p.Kinds) > 0 && !slices.Contains(p.Kinds, d.Kind) {
			continue
		}
		if matches(p.Path, d.Path) {
			return p.Reason, true
		}
	}
	return "", false
}

// matches reports whether a path is one of a pattern, see Permit.
func matches(pattern, path Path) bool {
	switch {
	case len(pattern) == 0:
		return len(path) == 0
	case pattern[0] == "**":
		return matches(pattern[1:], path) || len(path) > 0 && matches(pattern, path[1:])
	case len(path) == 0:
		return false
	}
	return (pattern[0] == "*" || pattern[0] == path[0]) && matches(pattern[1:], path[1:])
}
