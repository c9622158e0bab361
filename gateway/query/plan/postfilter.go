package plan

import (
	"fmt"
	"strings"

	"downpour/encoding"
	"downpour/gateway/query"
)

// PostFilter decides about a series by the names of its tag values. It is applied once
// to each span, before the span joins a group. Its methods may be called from many
// goroutines.
type PostFilter struct{ conditions []condition }

// condition is a filter on one tag key.
type condition struct {
	tagk   encoding.UID // nil: a key that no series has
	filter *query.Filter
	// keepWithoutKey keeps a series that does not have the key.
	keepWithoutKey bool
}

func (p *PostFilter) add(c condition) { p.conditions = append(p.conditions, c) }

// TagKs returns the keys of whose values the filter needs the names, ascending.
func (p *PostFilter) TagKs() []encoding.UID {
	var keys []encoding.UID
	for _, c := range p.conditions {
		if c.tagk != nil {
			keys = append(keys, c.tagk)
		}
	}
	return sortUIDs(keys)
}

// Err returns why Keep could not decide about some series, nil if it could decide about all.
func (p *PostFilter) Err() error {
	for _, c := range p.conditions {
		if err := c.filter.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Keep reports whether a series passes the filter. value returns the name of the series'
// value for a key, and whether the series has the key. What it has reported counts only if
// Err returns nil afterwards.
func (p *PostFilter) Keep(value func(tagk encoding.UID) (name string, ok bool)) bool {
	for _, c := range p.conditions {
		name, ok := "", false
		if c.tagk != nil { // else no series has the key
			name, ok = value(c.tagk)
		}
		if ok && !c.filter.Match(name) || !ok && !c.keepWithoutKey {
			return false
		}
	}
	return true
}

// String returns the filter as explain prints it, a line for each condition.
func (p *PostFilter) String() string {
	var b strings.Builder
	for _, c := range p.conditions {
		fmt.Fprintf(&b, "name of %s", c.filter.TagK)
		if c.tagk != nil {
			fmt.Fprintf(&b, " (%s)", c.tagk)
		}
		fmt.Fprintf(&b, " %s(%s)", c.filter.Type, c.filter.Text)
		if c.keepWithoutKey {
			b.WriteString(", or no such key")
		}
		b.WriteByte('\n')
	}
	return b.String()
}
