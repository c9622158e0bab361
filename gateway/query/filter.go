package query

import (
	"errors"
	"slices"
	"strings"
)

// Filter types. Source: TagVFilter and its subclasses.
const (
	LiteralOr     = "literal_or"
	ILiteralOr    = "iliteral_or"
	NotLiteralOr  = "not_literal_or"
	NotILiteralOr = "not_iliteral_or"
	Wildcard      = "wildcard"
	IWildcard     = "iwildcard"
	Regexp        = "regexp"
)

// FilterTypes lists the types that a filter can have.
func FilterTypes() []string {
	return []string{ILiteralOr, IWildcard, LiteralOr, NotILiteralOr, NotLiteralOr, Regexp, Wildcard}
}

// Filter restricts the value of one tag key.
type Filter struct {
	Type string // one of FilterTypes
	TagK string
	Text string // the expression as written
	// GroupBy makes a group for each value of the key.
	GroupBy bool

	ignoreCase bool // letters match in either case
	literals   []string
	wildcard   *wildcard
	regexp     *javaRegexp
}

// NewFilter returns a filter; kind is one of FilterTypes in lower case. The error
// describes the fault in OpenTSDB's words. It is an *UnsupportedError for a filter that
// OpenTSDB would accept.
func NewFilter(kind, tagk, text string, groupBy bool) (Filter, error) {
	f := Filter{Type: kind, TagK: tagk, Text: text, GroupBy: groupBy}
	switch {
	case kind == "":
		return f, errors.New("The filter type cannot be null or empty")
	case tagk == "":
		return f, errors.New("The tagk cannot be null or empty")
	case !slices.Contains(FilterTypes(), kind):
		return f, errors.New("Could not find a tag value filter of the type: " + kind)
	case text == "":
		return f, errors.New("Filter cannot be null or empty")
	}
	f.ignoreCase = kind == ILiteralOr || kind == NotILiteralOr || kind == IWildcard
	err := f.build()
	return f, err
}

// build parses the filter's text.
func (f *Filter) build() (err error) {
	switch f.Type {
	case Wildcard, IWildcard:
		f.wildcard, err = newWildcard(f.Text, f.ignoreCase)
	case Regexp:
		f.regexp, err = newJavaRegexp(f.Text)
	default:
		if f.Text == "|" {
			return errors.New("Filter must contain more than just a pipe")
		}
		for _, v := range javaSplit(f.Text, "|") {
			if f.ignoreCase {
				v = strings.ToLower(v)
			}
			f.literals = append(f.literals, v)
		}
		slices.Sort(f.literals) // Match searches them
		f.literals = slices.Compact(f.literals)
	}
	return err
}

// stepsOf counts the instructions of the filters' compiled regular expressions.
func stepsOf(filters []Filter) (n int) {
	for i := range filters {
		if r := filters[i].regexp; r != nil {
			n += r.steps
		}
	}
	return n
}

// size estimates the memory of the filter, in bytes.
func (f *Filter) size() int64 {
	n := filterBytes + int64(len(f.TagK)+len(f.Text))
	for _, l := range f.literals {
		n += textBytes + int64(len(l))
	}
	switch {
	case f.wildcard != nil:
		n += int64(len(f.wildcard.texts)) * textBytes
	case f.regexp != nil:
		n += int64(f.regexp.steps) * stepBytes
	}
	return n
}

// Match reports whether the filter admits a tag value. It does not decide on a series without the
// key. It may be called from many goroutines. Its results are valid only if Err returns nil
// afterwards.
func (f *Filter) Match(value string) bool {
	switch {
	case f.wildcard != nil:
		return f.wildcard.match(value)
	case f.regexp != nil:
		return f.regexp.find(value)
	}
	if f.ignoreCase {
		value = strings.ToLower(value)
	}
	_, found := slices.BinarySearch(f.literals, value)
	return found != f.Negative()
}

// Err returns why Match could not decide about some value, nil if it could decide about all.
func (f *Filter) Err() error {
	if f.regexp != nil {
		if fault := f.regexp.fault.Load(); fault != nil {
			return fault
		}
	}
	return nil
}

// Negative reports whether the filter admits everything but what it lists.
func (f *Filter) Negative() bool { return f.Type == NotLiteralOr || f.Type == NotILiteralOr }

// Literals returns the values that a filter of a *literal_or type lists, ascending, in lower
// case if the filter ignores case.
func (f *Filter) Literals() []string { return f.literals }

// Exact reports whether the literals are names as they are stored.
func (f *Filter) Exact() bool { return f.Type == LiteralOr || f.Type == NotLiteralOr }

// MatchesAll reports whether the filter admits every value.
func (f *Filter) MatchesAll() bool { return f.wildcard != nil && f.wildcard.all() }

// Prefix returns a prefix of every value that the filter admits, often "".
func (f *Filter) Prefix() string {
	switch {
	case f.wildcard != nil:
		return f.wildcard.prefix()
	case f.regexp != nil:
		return f.regexp.prefix
	}
	return ""
}

// same reports whether OpenTSDB considers two filters equal. It compares neither group-by
// nor the stars at the ends of wildcards.
// Source: TagVWildcardFilter.equals and its kin.
func (f *Filter) same(g *Filter) bool { return f.identity() == g.identity() }

// identity returns a text that is equal for filters that are the same.
func (f *Filter) identity() string {
	kind := f.Type
	parts := f.literals
	switch {
	case f.wildcard != nil:
		kind, parts = Wildcard, f.wildcard.texts
		if f.ignoreCase { // the type of a shorthand is still wildcard
			kind = IWildcard
		}
	case f.regexp != nil:
		parts = []string{f.Text}
	}
	return strings.Join(append([]string{f.TagK, kind}, parts...), "\x00")
}

// shorthand returns the filter of a value in a tags map, or of a tag in braces: * any
// value, type(text) that filter, other text with a star a wildcard that ignores case,
// and all else literals.
// Source: TagVFilter.getFilter, mapToFilters.
func shorthand(tagk, value string, groupBy bool) (Filter, error) {
	switch open := strings.IndexByte(value, '('); {
	case tagk == "":
		return Filter{}, errors.New("Tagk cannot be null or empty")
	case value == "":
		return Filter{}, errors.New("Filter cannot be null or empty")
	case open >= 0:
		if !strings.HasSuffix(value, ")") {
			return Filter{}, errors.New("Filter must end with a ')': " + value)
		}
		return NewFilter(strings.ToLower(value[:open]), tagk, value[open+1:len(value)-1], groupBy)
	case strings.Contains(value, "*"):
		// In OpenTSDB, too, its type is wildcard although it ignores case.
		f := Filter{Type: Wildcard, TagK: tagk, Text: value, GroupBy: groupBy, ignoreCase: true}
		err := f.build()
		return f, err
	}
	return NewFilter(LiteralOr, tagk, value, groupBy)
}

// addShorthand adds a filter to a list. If a group-by filter is the same as one in the
// list, that one becomes group-by instead. Source: TagVFilter.mapToFilters.
func addShorthand(filters []Filter, tagk, value string, kind bracesKind) ([]Filter, error) {
	groupBy := kind == groupingBraces
	f, err := shorthand(tagk, value, groupBy)
	if err != nil {
		return filters, err
	}

	if groupBy {
		for i := range filters {
			if filters[i].same(&f) {
				filters[i].GroupBy = true
				return filters, nil
			}
		}
	}
	return append(filters, f), nil
}
