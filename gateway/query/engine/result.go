package engine

import (
	"encoding/json"

	"downpour/encoding"
)

// Tag is one tag of a result, as names.
type Tag struct{ K, V string }

// Result is one group of one sub-query, names in place of UIDs.
type Result struct {
	// Query is the index of the sub-query.
	Query int
	// Key is the UIDs of the group's tag values: the same from one answer to
	// the next.
	Key    string
	Metric string // empty when no member has a point in the scan range
	// Tags are the tags that all members with such a tag share, AggregateTags
	// the keys that have several values; both by tagk UID.
	Tags          []Tag
	AggregateTags []string
	TSUIDs        []string // upper-case hex, sorted; nil unless the query shows them
	Points        encoding.Points
	// NaNIsNull tells that the fill policy is null.
	NaNIsNull bool
	// Annotations are those of the members inside the query, as stored; HasNotes
	// tells that the scan met any.
	Annotations []json.RawMessage
	HasNotes    bool
	// GlobalAnnotations are those inside the query; nil where the query does
	// not ask for them or its hours have none. The engine does not fill it.
	GlobalAnnotations []json.RawMessage
}
