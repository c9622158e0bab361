package pebble

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/journal"
)

// batchHeader is the length of what a batch begins with: its sequence number (8
// bytes) and the count of its changes (4).
const batchHeader = 12

// rowTimes is the range of the times of some rows, in seconds; zeros for no row.
type rowTimes struct {
	grouping    Grouping
	first, last uint32
}

// addKey adds the time of a key's row, if the row has one.
func (t *rowTimes) addKey(key []byte) {
	table, row, _ := bytes.Cut(key[:split(key)], []byte{0})
	// The catalogue, whose name is empty, has no rows with times; nor has a key
	// without a row, as a broken batch may hold.
	if len(table) == 0 || len(row) == 0 {
		return
	}

	seconds, ok := t.grouping.Time(row[:len(row)-1]) // without the 00 that ends the row
	if !ok {
		return
	}
	if t.first == 0 || seconds < t.first {
		t.first = seconds
	}
	t.last = max(t.last, seconds)
}

// addBatch adds the times of a batch's rows. It reads a broken batch up to where
// that makes no sense any more.
func (t *rowTimes) addBatch(b []byte) {
	if len(b) < batchHeader {
		return
	}
	for b = b[batchHeader:]; len(b) > 0; {
		kind := pebble.InternalKeyKind(b[0])
		key, rest, ok := cutString(b[1:])
		if !ok {
			return
		}

		switch kind {
		case pebble.InternalKeyKindSet, pebble.InternalKeyKindMerge, pebble.InternalKeyKindRangeDelete:
			// The value follows; that of a range deletion is its end.
			if _, rest, ok = cutString(rest); !ok {
				t.addKey(key)
				return
			}
		case pebble.InternalKeyKindDelete:
		default:
			return
		}
		t.addKey(key)
		b = rest
	}
}

// cutString cuts a string with its length before it, as a uvarint, from b.
func cutString(b []byte) (s, rest []byte, ok bool) {
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return nil, b, false
	}
	return b[n : n+int(length)], b[n+int(length):], true
}

// fill sets the times of a fault, if there are any.
func (t *rowTimes) fill(f *store.Fault) {
	if t.first > 0 {
		f.First, f.Last = time.Unix(int64(t.first), 0), time.Unix(int64(t.last), 0)
	}
}

// fillTimes sets the times of a fault of the log: those of the rows that can be
// read in the broken part, else those of the batches right before and after it.
func (l *logFile) fillTimes(f *store.Fault) {
	inside, beside := rowTimes{grouping: l.e.grouping}, rowTimes{grouping: l.e.grouping}
	for _, h := range l.Holes {
		inside.addBatch(journal.BrokenPayload(l.data[h.Start:h.End]))
	}
	inside.addBatch(journal.BrokenPayload(l.data[l.End : l.End+l.Torn]))

	for i, rec := range l.Records {
		// Only the intact batches next to the broken part, one on each side.
		before := rec.End <= f.Offset && (i+1 == len(l.Records) || l.Records[i+1].Start >= f.Offset)
		after := rec.Start >= f.Offset && (i == 0 || l.Records[i-1].End <= f.Offset)
		if before || after {
			beside.addBatch(rec.Data)
		}
	}

	inside.fill(f)
	// Nothing in the broken part has a time: what is around it does.
	if f.First.IsZero() {
		beside.fill(f)
	}
}
