package plan

import (
	"bytes"
	"slices"

	"downpour/encoding"
	"downpour/gateway/query"
)

// resolvedFilter is a filter as OpenTSDB holds it after names are resolved.
type resolvedFilter struct {
	filter   *query.Filter
	tagk     encoding.UID
	literals []encoding.UID // resolved values of literal_or, ascending
	// postScan reports whether names must be checked against the filter, unless the
	// row-key pattern does.
	postScan bool
}

// resolveFilters resolves filters in the order of the request. OpenTSDB finds an empty
// literal before it looks anything up, so that error comes first.
// Source: TagVFilter.resolveTags, TagVLiteralOrFilter.resolveTagkName.
func (c *compiler) resolveFilters() ([]resolvedFilter, error) {
	for i := range c.sub.Filters {
		if f := &c.sub.Filters[i]; c.resolvesLiterals(f) && slices.Contains(f.Literals(), "") {
			return nil, query.RunFault("Missing UID name")
		}
	}

	resolved := make([]resolvedFilter, len(c.sub.Filters))
	for i := range resolved {
		f := &c.sub.Filters[i]
		r := resolvedFilter{filter: f, postScan: !f.MatchesAll()}
		if c.resolvesLiterals(f) {
			for _, name := range f.Literals() {
				u, known := c.names.TagVs[name]
				if !known && !c.opt.SkipUnresolved {
					return nil, &query.UnknownNameError{Kind: encoding.UIDTagV, Name: name}
				}
				if known {
					r.literals = append(r.literals, u)
				}
			}
			r.literals = sortUIDs(r.literals)
		}
		// OpenTSDB looks for the key of a filter after its values.
		if r.tagk = c.names.TagKs[f.TagK]; r.tagk == nil {
			return nil, &query.UnknownNameError{Kind: encoding.UIDTagK, Name: f.TagK}
		}
		resolved[i] = r
	}
	return resolved, nil
}

// resolvesLiterals reports whether OpenTSDB looks up a filter's values.
func (c *compiler) resolvesLiterals(f *query.Filter) bool {
	return f.Type == query.LiteralOr && len(f.Literals()) <= c.opt.expansionLimit()
}

// keyFilters are the filters on one tag key that take effect.
type keyFilters struct {
	tagk    encoding.UID
	groupBy bool
	// pattern are the values that OpenTSDB's row-key pattern admits; nil is any value.
	pattern []encoding.UID
	// post are the filters that must be checked in addition to the pattern.
	post []resolvedFilter
}

// filtersAsOpenTSDB decides which filters take effect, key by key in ascending order. It
// repeats what OpenTSDB does with several filters on one key. Of the first key the
// literals of all filters are united. Of later keys each filter is looked at alone: the
// last one says what row keys may have, and an earlier literal filter, which OpenTSDB
// takes to be in the row-key pattern, is not checked any more. limit is the expansion
// limit. Source: TsdbQuery.findGroupBys.
func filtersAsOpenTSDB(filters []resolvedFilter, limit int) []keyFilters {
	filters = sortedByKey(filters)
	var keys []keyFilters
	expanded := 0 // values in OpenTSDB's pattern, overwritten ones included
	for len(filters) > 0 {
		// Only the filters of the first key are looked at together.
		n := 1
		if len(keys) == 0 {
			for n < len(filters) && bytes.Equal(filters[n].tagk, filters[0].tagk) {
				n++
			}
		}
		together := filters[:n]
		filters = filters[n:]

		if len(keys) == 0 || !bytes.Equal(keys[len(keys)-1].tagk, together[0].tagk) {
			keys = append(keys, keyFilters{tagk: together[0].tagk})
		}
		expanded = keys[len(keys)-1].applyTogether(together, expanded, limit)
	}
	return keys
}

// applyTogether changes the key's pattern, group-by and post filters by filters that OpenTSDB evaluates in
// one step. expanded is how many values the patterns of all keys have expanded to so far, of at most limit; it returns
// the new number.
func (k *keyFilters) applyTogether(filters []resolvedFilter, expanded, limit int) int {
	var union []encoding.UID
	for _, f := range filters {
		k.groupBy = k.groupBy || f.filter.GroupBy
		union = append(union, f.literals...)
	}
	union = sortUIDs(union)

	// Beyond the limit OpenTSDB leaves the pattern as it was.
	inPattern := len(union) > 0 && expanded+len(union) <= limit
	switch {
	case inPattern:
		k.pattern = union
		expanded += len(union)
	case len(union) == 0:
		// As in OpenTSDB, a filter without values undoes what an earlier one of the key
		// has allowed.
		k.pattern = nil
	}

	// Literals that the pattern has need no check of names.
	for _, f := range filters {
		if f.postScan && !(inPattern && len(f.literals) > 0) {
			k.post = append(k.post, f)
		}
	}
	return expanded
}

// allFilters lets all filters of each key take effect (query.FixFilters).
func allFilters(filters []resolvedFilter) (keys []keyFilters) {
	for _, f := range sortedByKey(filters) {
		if len(keys) == 0 || !bytes.Equal(keys[len(keys)-1].tagk, f.tagk) {
			keys = append(keys, keyFilters{tagk: f.tagk})
		}
		k := &keys[len(keys)-1]
		k.groupBy = k.groupBy || f.filter.GroupBy
		if f.postScan {
			k.post = append(k.post, f)
		}
	}
	return keys
}

// sortedByKey returns a copy that is sorted by tagk; filters on one key stay in order.
func sortedByKey(filters []resolvedFilter) []resolvedFilter {
	sorted := slices.Clone(filters)
	slices.SortStableFunc(sorted, func(a, b resolvedFilter) int { return bytes.Compare(a.tagk, b.tagk) })
	return sorted
}
