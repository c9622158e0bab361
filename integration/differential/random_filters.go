package differential

import (
	"math/rand/v2"
	"slices"
	"strings"

	"downpour/gateway/query"
)

func randomFilters(r *rand.Rand, d *Data, metric string) (filters []Filter) {
	keys := slices.Clone(TagKeys)
	r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, key := range keys[:pick(r, []int{0, 1, 1, 1, 2, 2, 3})] {
		filters = append(filters, randomFilter(r, d, metric, key))
		if r.IntN(7) == 0 { // two of one key
			filters = append(filters, randomFilter(r, d, metric, key))
		}
	}
	// A key that no series has, or one without a UID.
	if r.IntN(60) == 0 {
		filters = append(filters, Filter{Type: "wildcard", TagK: pick(r, []string{AbsentKey, "unknown"}), Text: "*"})
	}
	return filters
}

// admits reports whether a filter lets a series through, as far as a guess goes:
// the judges are the servers.
func admits(f Filter, tags map[string]string) bool {
	value, there := tags[f.TagK]
	if !there {
		return false
	}
	g, err := query.NewFilter(f.Type, f.TagK, f.Text, f.GroupBy)
	return err == nil && g.Match(value)
}

func randomFilter(r *rand.Rand, d *Data, metric, key string) Filter {
	kind := pick(r, []string{
		"literal_or", "literal_or", "literal_or", "iliteral_or", "not_literal_or", "not_iliteral_or",
		"wildcard", "wildcard", "iwildcard", "regexp",
	})
	f := Filter{Type: kind, TagK: key, GroupBy: r.IntN(2) == 0}
	switch kind {
	case "wildcard", "iwildcard":
		f.Text = randomWildcard(r, pick(r, tagValues[key]))
	case "regexp":
		f.Text = randomRegexp(r, pick(r, tagValues[key]))
	default:
		f.Text = randomLiterals(r, d, metric, key)
	}
	return f
}

func randomLiterals(r *rand.Rand, d *Data, metric, key string) string {
	var values []string
	for range 1 + r.IntN(4) {
		switch used := d.Values(metric, key); {
		case len(used) > 0 && r.IntN(4) > 0:
			values = append(values, pick(r, used))
		default:
			values = append(values, pick(r, tagValues[key]))
		}
	}
	// A value that no series has, or one without a UID.
	if r.IntN(30) == 0 {
		values = append(values, pick(r, []string{AbsentValue, AbsentValue, "unknown"}))
	}
	return strings.Join(values, "|")
}

// randomWildcard keeps pieces of a value and puts stars between them.
func randomWildcard(r *rand.Rand, v string) string {
	cut := r.IntN(len(v) + 1)
	return pick(r, []string{
		"*", "*", "*", v[:cut] + "*", "*" + v[cut:], "*" + v[cut:] + "*", v[:cut] + "*" + v[cut:],
		v[:1] + "*" + v[len(v)-1:], "*" + v[:1] + "*" + v[len(v)-1:] + "*", "**" + v[cut:],
	})
}

func randomRegexp(r *rand.Rand, v string) string {
	cut := r.IntN(len(v) + 1)
	return pick(r, []string{
		".*", ".", "^" + v[:cut], v[cut:] + "$", "^(" + v + "|web02)$", "[a-z]+[0-9]", "(?i)" + v, "^[^w]", "b.*b|a",
		"^$", `\d\d$`, "0[12]",
	})
}

// onePerKey makes filters what a tags map can say: each key has one, its last, and all group.
func onePerKey(filters []Filter) (kept []Filter) {
	for i, f := range filters {
		f.GroupBy = true
		if !slices.ContainsFunc(filters[i+1:], func(g Filter) bool { return g.TagK == f.TagK }) {
			kept = append(kept, f)
		}
	}
	return kept
}

// othersFirst orders the filters as a GET's are read: those that do not group
// come first. The order decides between several filters on one key.
func (s *Sub) othersFirst() {
	slices.SortStableFunc(s.Filters, func(a, b Filter) int {
		switch {
		case a.GroupBy == b.GroupBy:
			return 0
		case b.GroupBy:
			return -1
		}
		return 1
	})
}
