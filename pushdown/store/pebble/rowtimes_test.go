package pebble

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/journal"
)

// hourKey is the key of a cell of an hour's row, in a table with a short name.
func hourKey(hour uint32) []byte { return appendKey(nil, "t", hourRow(1, hour, ""), "t", []byte("q")) }

// batched appends a change to a batch: the kind, and strings with their lengths.
func batched(batch []byte, kind pebble.InternalKeyKind, parts ...[]byte) []byte {
	batch = append(batch, byte(kind))
	for _, p := range parts {
		batch = append(binary.AppendUvarint(batch, uint64(len(p))), p...)
	}
	return batch
}

// shortRow has a byte too few for a time. With the 00 that ends it, it would be a full hour.
func shortRow() []byte { return binary.BigEndian.AppendUint32([]byte{0, 0, 1}, 225*23_000<<8)[:6] }

// A batch has the times of its rows, whatever their order. A broken one has those up to where it makes no sense.
func TestRowTimes_batch(t *testing.T) {
	const set, merge, del = pebble.InternalKeyKindSet, pebble.InternalKeyKindMerge, pebble.InternalKeyKindDelete
	empty := make([]byte, batchHeader)
	one := batched(empty, set, hourKey(1), []byte("v"))
	mixed := batched(batched(batched(empty, merge, hourKey(3), nil), del, hourKey(1)), set, hourKey(2), nil)
	overlong := append(append(bytes.Clone(one), byte(del)), bytes.Repeat([]byte{0xff}, 11)...)
	// Its length comes first, which is 15, as many bytes as do not follow: that is the kind of deletions of ranges.
	hidden := append([]byte{byte(pebble.InternalKeyKindRangeDelete)},
		batched(nil, 0, appendPrefix(nil, "t", hourRow(1, 9, "")))[1:]...)
	for name, c := range map[string]struct {
		batch       []byte
		first, last uint32 // hours; zeros for none
	}{
		"too short":             {empty[:5], 0, 0},
		"no change":             {empty, 0, 0},
		"in order":              {batched(one, set, hourKey(3), nil), 1, 3},
		"in another order":      {mixed, 1, 3},
		"a deletion of a range": {batched(empty, pebble.InternalKeyKindRangeDelete, hourKey(2), hourKey(4)), 2, 2},
		"the catalogue":         {batched(one, set, appendKey(nil, catalogue, hourRow(1, 5, ""), "t", nil), nil), 1, 1},
		"no row":                {batched(one, set, []byte("t\x00"), nil), 1, 1},
		"no table":              {batched(one, set, []byte("t"), nil), 1, 1},
		"a short row":           {batched(one, set, appendKey(nil, "t", shortRow(), "t", nil), nil), 1, 1},
		"another kind":          {batched(one, pebble.InternalKeyKindLogData, hourKey(5)), 1, 1},
		"a key that is cut off": {batched(one, set, hourKey(5))[:len(one)+10], 1, 1},
		"a value that is cut":   {batched(one, set, hourKey(5), []byte("value"))[:len(one)+30], 1, 5},
		"no length":             {overlong, 1, 1},
		"a key that is no kind": {append(append(bytes.Clone(one), byte(del)), hidden...), 1, 1},
		"nor is a value":        {append(batched(empty, set, hourKey(1)), hidden...), 1, 1},
	} {
		got := rowTimes{grouping: hourly}
		got.addBatch(c.batch)
		want := rowTimes{grouping: hourly}
		if c.last > 0 {
			want.first, want.last = 1356998400+3600*c.first, 1356998400+3600*c.last
		}
		if got != want {
			t.Errorf("%s: got %d to %d, want %d to %d", name, got.first, got.last, want.first, want.last)
		}
	}
}

// wantHours compares the times of a fault with some hours.
func wantHours(t *testing.T, what string, f store.Fault, first, last int64) {
	t.Helper()
	if f.First.Unix() != 1356998400+3600*first || f.Last.Unix() != 1356998400+3600*last {
		t.Errorf("%s: from %v to %v, want hours %d to %d", what, f.First, f.Last, first, last)
	}
}

// A fault of a log without a row has the times of the batches next to it, and of no others.
func TestFillTimes_around(t *testing.T) {
	l := logFile{e: &examination{grouping: hourly}}
	for hour, start := range []int64{0, 10, 30, 40} {
		batch := batched(make([]byte, batchHeader), pebble.InternalKeyKindSet, hourKey(uint32(hour)), nil)
		l.Records = append(l.Records, journal.Record{Start: start, End: start + 10, Data: batch})
	}
	for offset, want := range map[int64][2]int64{
		0: {0, 0}, 10: {0, 1}, 20: {1, 2}, 25: {1, 2}, 30: {1, 2}, 40: {2, 3}, 50: {3, 3}, 60: {3, 3},
	} {
		f := store.Fault{Offset: offset}
		l.fillTimes(&f)
		wantHours(t, "around", f, want[0], want[1])
	}
}

// A torn end that still has a row has its time.
func TestFillTimes_torn(t *testing.T) {
	var records []journal.Record
	for hour := range uint32(3) {
		batch := batched(make([]byte, batchHeader), pebble.InternalKeyKindSet, hourKey(hour), []byte("value"))
		records = append(records, journal.Record{Data: batch})
	}
	data := journal.AppendLog(nil, 1, records)
	whole := journal.Log(data, 1)
	last := whole.Records[len(whole.Records)-1].End
	data[last-1] ^= 1
	l := logFile{e: &examination{grouping: hourly}, data: data[:last], Reading: journal.Log(data[:last], 1)}
	f := store.Fault{Offset: l.End}
	l.fillTimes(&f)
	if wantHours(t, "torn", f, 2, 2); l.Torn == 0 {
		t.Error("the end is not torn")
	}
}
