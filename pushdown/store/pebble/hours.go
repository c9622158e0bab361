package pebble

import (
	"encoding/binary"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"downpour/pushdown/store"
)

// batchHeader is the length of a batch's sequence number and count.
const batchHeader = 12

// hours is a range of hours, empty at first.
type hours struct {
	head        int // as in Options
	first, last uint32
}

// key adds the hour of a key's row, if it looks like one: its base time is a
// multiple of an hour, and after 1973, which names and other numbers hardly are.
func (h *hours) key(key []byte) {
	head := key[:split(key)]
	for i, c := range head {
		if c != 0 {
			continue
		}
		row := head[i+1:]
		if i == 0 || len(row) <= h.head {
			return
		}
		base := binary.BigEndian.Uint32(row[h.head-4:])
		if base%3600 != 0 || base < 100_000_000 {
			return
		}
		if h.first == 0 || base < h.first {
			h.first = base
		}
		h.last = max(h.last, base)
		return
	}
}

// batch adds the hours of a batch, of one that is broken as far as it makes
// sense.
func (h *hours) batch(b []byte) {
	if len(b) < batchHeader {
		return
	}
	for b = b[batchHeader:]; len(b) > 0; {
		kind := pebble.InternalKeyKind(b[0])
		key, rest, ok := field(b[1:])
		if !ok {
			return
		}
		switch kind {
		case pebble.InternalKeyKindSet, pebble.InternalKeyKindMerge, pebble.InternalKeyKindRangeDelete:
			if _, rest, ok = field(rest); !ok {
				h.key(key)
				return
			}
		case pebble.InternalKeyKindDelete:
		default:
			return
		}
		h.key(key)
		b = rest
	}
}

// field is a string behind its length.
func field(b []byte) (s, rest []byte, ok bool) {
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return nil, b, false
	}
	return b[n : n+int(length)], b[n+int(length):], true
}

// tell writes the hours into a fault.
func (h *hours) tell(f *store.Fault) {
	if h.first > 0 {
		f.First, f.Last = time.Unix(int64(h.first), 0), time.Unix(int64(h.last), 0)
	}
}

// hours tells of which hours a log's fault is: those that can be read in what is
// broken, else those of the batches beside it.
func (l *logFile) hours(f *store.Fault) {
	in, beside := hours{head: l.e.head}, hours{head: l.e.head}
	for _, h := range l.Holes {
		in.batch(l.payload(h.Start, h.End))
	}
	if l.Torn > 0 {
		in.batch(l.payload(l.End, l.End+l.Torn))
	}
	for i, rec := range l.Records {
		before := rec.End <= f.Offset && (i+1 == len(l.Records) || l.Records[i+1].Start >= f.Offset)
		behind := rec.Start >= f.Offset && (i == 0 || l.Records[i-1].End <= f.Offset)
		if before || behind {
			beside.batch(rec.Data)
		}
	}
	in.tell(f)
	if f.First.IsZero() {
		beside.tell(f)
	}
}

// payload is what stands behind the header of a broken chunk, of the form that
// is written now.
func (l *logFile) payload(from, to int64) []byte {
	return l.data[min(from+19, to):to]
}
