package engine

import (
	"encoding/json"

	"downpour/encoding"
)

// Tag is one tag of a result, as names.
type Tag struct{ K, V string }

// Result is one group of one sub-query, with names in place of UIDs.
type Result struct {
	// Query is the index of the sub-query.
	Query int
	// Key is the UIDs of the group's tag values. It identifies the group from one
	// answer to the next.
	Key    string
	Metric string // "" if no member has a point in the scan range
	// Tags are the tags whose value all members with the key share. AggregateTags are
	// the keys that have several values. Both are sorted by tagk UID.
	Tags          []Tag
	AggregateTags []string
	// TagUIDs and AggregateUIDs are the same as UIDs, in the same order.
	TagUIDs       []encoding.TagPair
	AggregateUIDs []encoding.UID
	TSUIDs        []string // upper-case hex, sorted; nil unless the query shows them
	Points        encoding.Points
	// NaNIsNull reports whether the fill policy is null, so that NaN is written as
	// null.
	NaNIsNull bool
	// Annotations are those of the members that start inside the query, as stored.
	// HasNotes reports whether the scan found any, at any time.
	Annotations []json.RawMessage
	HasNotes    bool
	// GlobalAnnotations are the annotations of no series that start inside the query;
	// nil if the query does not request them or its hours have none. The engine leaves
	// it nil; its caller fills it.
	GlobalAnnotations []json.RawMessage
}
