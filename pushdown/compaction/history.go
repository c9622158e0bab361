package compaction

import (
	"bytes"
	"cmp"
	"slices"

	"downpour/pushdown/store"
)

// history is what HBase still has of a row: the puts that were not dropped yet, and the markers of
// deletions, which hide puts from readers. Times are in ms since 1970.
type history struct {
	// What the markers hide, by the four kinds of them.
	familyHiddenUntil int64            // puts up to this time
	hiddenTimes       map[int64]bool   // puts at these times
	columnHiddenUntil map[string]int64 // puts of a column, by qualifier, up to this time
	hiddenVersions    map[version]bool // these puts

	puts     []store.Version // puts of points, hidden or not
	unhidden []store.Version // puts of anything that no marker hides, by qualifier, the newest first
	visible  []store.Version // what a Get returns: the newest unhidden put of each column
	newest   int64           // timestamp of puts and markers, without our own marker of changes
}

// version names a put.
type version struct {
	qualifier string
	timestamp int64
}

// newHistory returns the history of a row by all its puts and markers.
func newHistory(all []store.Version) *history {
	h := &history{
		familyHiddenUntil: -1,
		hiddenTimes:       map[int64]bool{},
		columnHiddenUntil: map[string]int64{},
		hiddenVersions:    map[version]bool{},
	}
	for _, v := range all {
		if !bytes.Equal(v.Qualifier, marker) {
			h.newest = max(h.newest, v.Timestamp)
		}
		switch v.Kind {
		case store.FamilyMarker:
			h.familyHiddenUntil = max(h.familyHiddenUntil, v.Timestamp)
		case store.FamilyVersionMarker:
			h.hiddenTimes[v.Timestamp] = true
		case store.ColumnMarker:
			h.columnHiddenUntil[string(v.Qualifier)] = max(h.columnHiddenUntil[string(v.Qualifier)], v.Timestamp)
		case store.VersionMarker:
			h.hiddenVersions[version{string(v.Qualifier), v.Timestamp}] = true
		}
	}

	for _, v := range all {
		if v.Kind == store.PutVersion && hasPoints(v.Qualifier) {
			h.puts = append(h.puts, v)
		}
		if !h.hides(v) { // a marker hides itself, too
			h.unhidden = append(h.unhidden, v)
		}
	}
	slices.SortStableFunc(h.unhidden, func(a, b store.Version) int {
		return cmp.Or(bytes.Compare(a.Qualifier, b.Qualifier), cmp.Compare(b.Timestamp, a.Timestamp))
	})
	for i, v := range h.unhidden {
		if i == 0 || !bytes.Equal(h.unhidden[i-1].Qualifier, v.Qualifier) {
			h.visible = append(h.visible, v)
		}
	}
	return h
}

// hides reports whether a marker hides a put, earlier or later.
func (h *history) hides(v store.Version) bool {
	column, ok := h.columnHiddenUntil[string(v.Qualifier)]
	return v.Timestamp <= h.familyHiddenUntil || h.hiddenTimes[v.Timestamp] || ok && v.Timestamp <= column ||
		h.hiddenVersions[version{string(v.Qualifier), v.Timestamp}]
}
