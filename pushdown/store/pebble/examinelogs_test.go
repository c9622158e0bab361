package pebble

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/disk"
	"downpour/pushdown/store/pebble/journal"
)

// journalOf is a closed log with a record for each number: a batch of one change, and 700 bytes without a time.
func journalOf(log uint64, numbers ...uint64) []byte {
	var records []journal.Record
	for _, n := range numbers {
		b := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, n), 1)
		records = append(records, journal.Record{Data: append(b, bytes.Repeat([]byte{0xab}, 700)...)})
	}
	return journal.AppendLog(nil, log, records)
}

// endChunk is the length of the chunk that ends a closed log.
const endChunk = 11

// begun is a log that is not closed: so many zeros follow its records.
func begun(closed []byte, zeros int) []byte {
	return append(bytes.Clone(closed[:len(closed)-endChunk]), make([]byte, zeros)...)
}

// flipped is a log with another byte at an offset.
func flipped(log []byte, at int) []byte {
	log = bytes.Clone(log)
	log[at] ^= 1
	return log
}

// blank is a log in which a sector from an offset on is zeros, as if it had not reached the disk.
func blank(log []byte, at int) []byte {
	log = bytes.Clone(log)
	clear(log[at : at+512])
	return log
}

// damagedLogs are states of logs, and what is said of them. Each record takes 723 bytes. Logs are empty if nil.
type damagedLogs struct {
	from   uint64
	marker string
	logs   map[uint64][]byte
	want   []string
}

func (d damagedLogs) try(t *testing.T, what string) {
	t.Helper()
	i := image{}
	var size, replay int64
	for n, data := range d.logs {
		i[disk.LogName(n)] = data
		for _, r := range journal.Log(data, n).Records {
			replay += r.End - r.Start
		}
		size += int64(len(data))
	}
	if d.marker != "" {
		i["marker.downpour-logs.000001."+d.marker] = nil
	}
	files := i.files(t)
	names, err := files.List("data")
	if err != nil {
		t.Fatal(err)
	}
	e := &examination{files: files, dir: "data", grouping: hourly, names: names}
	if err := e.examineLogs(d.from); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range e.found {
		got = append(got, fmt.Sprint(f.Kind, " ", f.Fault))
		if nothing := f.Kind == store.Torn || f.What == "missing"; nothing != (f.repair == nil) {
			t.Errorf("%s: %v: has a repair: %t", what, f.Fault, f.repair != nil)
		}
	}
	if !slices.Equal(got, d.want) {
		t.Errorf("%s: got %q, want %q", what, got, d.want)
	}
	if e.logs != len(d.logs) || e.bytes != size || e.replay != replay {
		t.Errorf("%s: %d logs, %d bytes, %d to replay, want %d, %d, %d", what, e.logs, e.bytes, e.replay,
			len(d.logs), size, replay)
	}
}

// Which logs there are, and whether their batches follow one another.
func TestExamineLogs_missing(t *testing.T) {
	a, b, c := journalOf(3, 10, 11), journalOf(5, 12, 13), begun(journalOf(7, 14), disk.LogZeros)
	none, next := journalOf(5), begun(journalOf(7, 12), disk.LogZeros)
	type files = map[uint64][]byte
	lost := func(names ...string) (said []string) {
		for _, name := range names {
			said = append(said, "lost "+name+": missing")
		}
		return said
	}
	const before = "what was written before it is missing: another log, or the end of one"
	gap := []string{"lost 000007.log at offset 0: " + before}
	for what, d := range map[string]damagedLogs{
		"whole":                      {3, "000003-000007", files{3: a, 5: b, 7: c}, nil},
		"no logs":                    {0, "", nil, nil},
		"no logs, nothing is synced": {0, "columns.v1-000000-000000", nil, nil},
		"no marker":                  {3, "", files{3: a, 5: b, 7: c}, nil},
		"the first":                  {3, "000003-000007", files{5: b, 7: c}, lost("000003.log")},
		"the newest":                 {3, "000003-000007", files{3: a, 5: b}, lost("000007.log")},
		"the only one":               {3, "000007-000007", nil, lost("000007.log")},
		"one between":                {3, "000003-000007", files{3: a, 7: c}, gap},
		"all":                        {3, "000003-000007", nil, lost("000003.log", "000007.log")},
		"one that is in tables":      {4, "000003-000007", files{5: b, 7: c}, lost("000004.log")},
		"all that are in tables":     {8, "000003-000007", nil, nil},
		"the newest is needed":       {7, "000003-000007", nil, lost("000007.log")},
		"before the store opened":    {3, "000005-000007", files{5: b, 7: c}, nil},
		"one without batches":        {3, "000003-000007", files{3: a, 5: none, 7: next}, nil},
		"a gap around it":            {3, "000003-000007", files{3: a, 5: none, 7: c}, gap},
		"the first without batches":  {5, "000005-000007", files{5: none, 7: c}, nil},
	} {
		d.try(t, what)
	}
}

// What is damaged in a log, and what of it may never have been on disk. Between two logs it was.
func TestExamineLogs_damage(t *testing.T) {
	const size = 723 // of a record
	a, b := journalOf(3, 10, 11, 12, 13, 14), journalOf(5, 15, 16)
	open := begun(a, 200)
	first := func(log []byte, marker string, want ...string) damagedLogs {
		return damagedLogs{3, marker, map[uint64][]byte{3: log, 5: b}, want}
	}
	last := func(log []byte, marker string, want ...string) damagedLogs {
		return damagedLogs{3, marker, map[uint64][]byte{3: log}, want}
	}
	fault := func(kind store.FaultKind, offset, bytes int64, what string) string {
		return fmt.Sprint(kind, " ", store.Fault{File: "000003.log", Offset: offset, Bytes: bytes, What: what})
	}
	damaged := func(offset, bytes int64) string {
		return fault(store.Lost, offset, bytes, "damaged: no intact record stands there, while records follow")
	}
	torn := func(offset, bytes int64) string { return fault(store.Torn, offset, bytes, "a torn end, left out") }
	unended := func(offset, bytes int64) string {
		return fault(store.Lost, offset, bytes, "its end is missing, while another log follows")
	}
	cut := func(offset int64) string {
		return fault(store.Lost, offset, -1, "cut off there: a log ends with its end chunk or with zeros")
	}
	const one, both = "000003-000003", "000003-000005" // the logs that are synced
	const gap = "lost 000005.log at offset 0: what was written before it is missing: another log, or the end of one"
	empty := fault(store.Lost, 0, -1, "no record is left of those that were synced")
	for what, d := range map[string]damagedLogs{
		"closed":                        last(a, one),
		"open":                          last(open, one),
		"a record":                      last(flipped(open, size+20), one, damaged(size, size)),
		"a record, closed":              last(flipped(a, size+20), one, damaged(size, size)),
		"two records":                   last(flipped(flipped(a, size), 3*size), one, damaged(size, 2*size)),
		"a record that may be torn":     last(blank(open, size), one, torn(size, 4*size)),
		"it, closed":                    last(blank(a, size), one, torn(size, 4*size)),
		"it, before another log":        first(blank(a, size), both, damaged(size, size)),
		"the first, before another log": first(flipped(a, 20), both, damaged(0, size)),
		"it, and one that is damaged":   last(flipped(blank(open, size), 3*size), one, damaged(3*size, 2*size)),
		"it, and another log":           first(flipped(blank(a, size), 3*size), both, damaged(size, 2*size)),
		"the first after another log": {3, both, map[uint64][]byte{3: a, 5: flipped(b, 20)},
			[]string{strings.Replace(damaged(0, size), "000003", "000005", 1)}},
		"the last record":                   last(flipped(open, 5*size-1), one, torn(4*size, size)),
		"the last record, closed":           first(flipped(a, 5*size-1), both, cut(5*size+endChunk), gap),
		"before another log":                first(open, both, unended(5*size, 0)),
		"before another log, not synced to": first(open, "", unended(5*size, 0)),
		"cut in the zeros":                  last(open[:5*size+disk.LogZeros-1], one, cut(5*size+disk.LogZeros-1)),
		"cut behind the zeros":              last(open[:5*size+disk.LogZeros], one),
		"cut at a record":                   last(open[:4*size], one, cut(4*size)),
		"cut in a record":                   last(open[:4*size+99], one, cut(4*size+99)),
		"cut before another log":            first(open[:4*size], both, cut(4*size), gap),
		"cut, and not synced to":            last(open[:4*size], ""),
		"cut in a record, not synced to":    last(open[:4*size+99], "", torn(4*size, 99)),
		"cut, and before the newest":        last(open[:4*size], "000001-000003", cut(4*size)),
		"cut, and after the newest":         last(open[:4*size], "000001-000002"),
		"zeros":                             last(make([]byte, 999), one, empty),
		"zeros, not synced to":              last(make([]byte, 999), ""),
		"nothing":                           last(nil, one, empty),
		"no record, but closed":             last(journalOf(3), one),
	} {
		d.try(t, what)
	}
}
