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

// FilterTypes are the types a filter can have.
func FilterTypes() []string {
	return []string{ILiteralOr, IWildcard, LiteralOr, NotILiteralOr, NotLiteralOr, Regexp, Wildcard}
}

// Filter restricts the value of one tag key.
type Filter struct {
	Type string // one of FilterTypes
	TagK string
	Text string // the expression as written
	// GroupBy tells that the key's values separate groups.
	GroupBy bool

	fold     bool // letters match in either case
	literals []string
	wildcard *wildcard
	regexp   *javaRegexp
}

// NewFilter builds a filter; kind is one of FilterTypes in lower case. An error
// says what cannot be built; *UnsupportedError, what only the reference could.
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
	f.fold = kind == ILiteralOr || kind == NotILiteralOr || kind == IWildcard
	return f, f.build()
}

func (f *Filter) build() (err error) {
	switch f.Type {
	case Wildcard, IWildcard:
		f.wildcard, err = newWildcard(f.Text, f.fold)
	case Regexp:
		f.regexp, err = newJavaRegexp(f.Text)
	default:
		if f.Text == "|" {
			return errors.New("Filter must contain more than just a pipe")
		}
		for _, v := range javaSplit(f.Text, "|") {
			if f.fold {
				v = strings.ToLower(v)
			}
			f.literals = append(f.literals, v)
		}
		slices.Sort(f.literals)
		f.literals = slices.Compact(f.literals)
	}
	return err
}

// stepsOf counts the steps of the filters' regular expressions.
func stepsOf(filters []Filter) (n int) {
	for i := range filters {
		if r := filters[i].regexp; r != nil {
			n += r.steps
		}
	}
	return n
}

// size is about the memory that the filter takes, in bytes.
func (f *Filter) size() int64 {
	n := filterBytes + int64(len(f.TagK)+len(f.Text))
	for _, l := range f.literals {
		n += textBytes + int64(len(l))
	}
	switch {
	case f.wildcard != nil:
		n += int64(len(f.wildcard.pieces)) * textBytes
	case f.regexp != nil:
		n += int64(f.regexp.steps) * stepBytes
	}
	return n
}

// Match tells whether the filter admits a tag value. A key's absence is another
// question. It may be called from many goroutines.
func (f *Filter) Match(value string) bool {
	switch {
	case f.wildcard != nil:
		return f.wildcard.match(value)
	case f.regexp != nil:
		return f.regexp.find(value)
	}
	if f.fold {
		value = strings.ToLower(value)
	}
	_, found := slices.BinarySearch(f.literals, value)
	return found != f.Negative()
}

// Negative tells whether the filter admits everything but what it lists.
func (f *Filter) Negative() bool { return f.Type == NotLiteralOr || f.Type == NotILiteralOr }

// Literals are the values that the filter lists, ascending, of *literal_or
// types; lower case where the filter ignores case.
func (f *Filter) Literals() []string { return f.literals }

// Exact tells whether the literals are names as they are stored.
func (f *Filter) Exact() bool { return f.Type == LiteralOr || f.Type == NotLiteralOr }

// MatchesAll tells whether the filter admits every value.
func (f *Filter) MatchesAll() bool { return f.wildcard != nil && f.wildcard.all() }

// Prefix is a prefix of every value that the filter admits, often "".
func (f *Filter) Prefix() string {
	switch {
	case f.wildcard != nil:
		return f.wildcard.prefix()
	case f.regexp != nil:
		return f.regexp.prefix
	}
	return ""
}

// same tells whether OpenTSDB takes two filters for one: it compares neither
// group-by nor, of wildcards, the stars at the ends.
// Source: TagVWildcardFilter.equals and its kin.
func (f *Filter) same(g *Filter) bool { return f.identity() == g.identity() }

func (f *Filter) identity() string {
	kind := f.Type
	parts := f.literals
	switch {
	case f.wildcard != nil:
		kind, parts = Wildcard, f.wildcard.pieces
		if f.fold {
			kind = IWildcard
		}
	case f.regexp != nil:
		parts = []string{f.Text}
	}
	return strings.Join(append([]string{f.TagK, kind}, parts...), "\x00")
}

// shorthand builds the filter that the value of a tags map or of a tag in
// braces stands for: * is any value, type(text) a filter, other text with a
// star a wildcard that ignores case, and all else literals.
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
		f := Filter{Type: Wildcard, TagK: tagk, Text: value, GroupBy: groupBy, fold: true}
		return f, f.build()
	}
	return NewFilter(LiteralOr, tagk, value, groupBy)
}

// addShorthand adds a filter to a list. A group-by filter that is there already
// only makes that one group. Source: TagVFilter.mapToFilters.
func addShorthand(filters []Filter, tagk, value string, groupBy bool) ([]Filter, error) {
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
