package compaction

import (
	"bytes"
	"cmp"
	"slices"

	"downpour/pushdown/store"
)

// history is what HBase still has of a row.
type history struct {
	family   int64 // all puts up to this time are hidden
	moments  map[int64]bool
	columns  map[string]int64 // the same by column
	versions map[version]bool

	puts    []store.Version // with points, hidden or not
	alive   []store.Version // puts that no marker hides, by qualifier, the newest first
	visible []store.Version // of each column the newest of these
	newest  int64           // timestamp of all but the marker of changes
}

// version names a put.
type version struct {
	qualifier string
	timestamp int64
}

// newHistory orders what was read of a row.
func newHistory(all []store.Version) *history {
	h := &history{family: -1, moments: map[int64]bool{}, columns: map[string]int64{}, versions: map[version]bool{}}
	for _, v := range all {
		if !bytes.Equal(v.Qualifier, marker) {
			h.newest = max(h.newest, v.Timestamp)
		}
		switch v.Kind {
		case store.FamilyMarker:
			h.family = max(h.family, v.Timestamp)
		case store.FamilyVersionMarker:
			h.moments[v.Timestamp] = true
		case store.ColumnMarker:
			h.columns[string(v.Qualifier)] = max(h.columns[string(v.Qualifier)], v.Timestamp)
		case store.VersionMarker:
			h.versions[version{string(v.Qualifier), v.Timestamp}] = true
		}
	}

	for _, v := range all {
		if v.Kind == store.PutVersion && hasPoints(v.Qualifier) {
			h.puts = append(h.puts, v)
		}
		if v.Kind == store.PutVersion && !h.hides(v) {
			h.alive = append(h.alive, v)
		}
	}
	slices.SortStableFunc(h.alive, func(a, b store.Version) int {
		return cmp.Or(bytes.Compare(a.Qualifier, b.Qualifier), cmp.Compare(b.Timestamp, a.Timestamp))
	})
	for i, v := range h.alive {
		if i == 0 || !bytes.Equal(h.alive[i-1].Qualifier, v.Qualifier) {
			h.visible = append(h.visible, v)
		}
	}
	return h
}

// hides reports whether a marker hides a put, earlier or later.
func (h *history) hides(v store.Version) bool {
	column, ok := h.columns[string(v.Qualifier)]
	return v.Timestamp <= h.family || h.moments[v.Timestamp] || ok && v.Timestamp <= column ||
		h.versions[version{string(v.Qualifier), v.Timestamp}]
}
