package differential

import (
	"slices"
	"strings"

	"downpour/integration/compare"
)

// Comparison is what two servers answered to one question, and how that compares.
type Comparison struct {
	Want, Got compare.Answer
	Report    compare.Report
	Rules     []string // those that were used
	Err       error    // the answer got cannot be read
}

// Equal says that nothing differs but what is meant.
func (c Comparison) Equal() bool { return c.Err == nil && c.Report.Equal() }

// Question is a Query or an Exp.
type Question[Q any] interface {
	// Without returns the question without a name in its filters. It shares nothing that
	// changes with the one before. ok is false if the name is in none of them.
	Without(name compare.UnknownName) (q Q, ok bool)
}

// Compare asks q. If the servers then miss different names, it asks q again without the one
// and without the other, as the rule compare.OneOfUnknownNames has it. The comparison is that
// of q itself; when the rule has held, its report is equal and its rules name it.
func Compare[Q Question[Q]](q Q, ask func(Q) Comparison) Comparison {
	c := ask(q)
	theirs, ours, ok := compare.UnknownNames(c.Want, c.Got)
	if !ok || c.Err != nil {
		return c
	}

	for _, name := range []compare.UnknownName{theirs, ours} {
		// Each name taken out makes the question smaller, so this ends.
		fewer, ok := q.Without(name)
		if !ok || !Compare(fewer, ask).Equal() {
			return c
		}
	}
	c.Report, c.Rules = compare.Report{}, append(c.Rules, compare.OneOfUnknownNames)
	return c
}

// Without takes a name out of the filters of all sub-queries, see Question.
func (q Query) Without(name compare.UnknownName) (_ Query, ok bool) {
	q = q.Clone()
	for i := range q.Subs {
		fewer, found := filtersWithout(q.Subs[i].Filters, name)
		q.Subs[i].Filters, ok = fewer, ok || found
	}
	return q, ok
}

// Without takes a name out of all filters, see Question.
func (e Exp) Without(name compare.UnknownName) (_ Exp, ok bool) {
	e.Filters = slices.Clone(e.Filters)
	for i := range e.Filters {
		fewer, found := filtersWithout(e.Filters[i].Tags, name)
		e.Filters[i].Tags, ok = fewer, ok || found
	}
	return e, ok
}

// filtersWithout drops the filters of a tag key, or takes a tag value out of the lists
// that name it, and drops those with nothing left. Only the values of literal_or
// are looked up.
func filtersWithout(filters []Filter, name compare.UnknownName) (kept []Filter, found bool) {
	kept = []Filter{}
	for _, f := range filters {
		if name.Kind == "tagk" && f.TagK == name.Name {
			found = true
			continue
		}
		values := strings.Split(f.Text, "|")
		if name.Kind == "tagv" && f.Type == "literal_or" && slices.Contains(values, name.Name) {
			found = true
			values = slices.DeleteFunc(values, func(v string) bool { return v == name.Name })
			if len(values) == 0 {
				continue
			}
			f.Text = strings.Join(values, "|")
		}
		kept = append(kept, f)
	}
	return kept, found
}
