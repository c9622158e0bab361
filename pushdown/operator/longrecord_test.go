package operator

import (
	"testing"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/store"
)

// ended is a scan whose rows were all read.
type ended struct {
	store.Scanner // only these calls
	stats         store.ScanStats
}

func (e ended) Stats() store.ScanStats { return e.stats }
func (e ended) Close() error           { return nil }
func (e ended) NextBytes() int64       { return 77 }

// Of a sub-part what it cost itself is recorded, without what the part had cost before; the part's counts are those of
// all its scans.
func TestLongPart_recordsSubPart(t *testing.T) {
	before := Stats{Ranges: 1000, Rejected: 5000, ScanTime: time.Hour}
	now := before
	now.Ranges, now.Rejected, now.ScanTime = before.Ranges+10, before.Rejected+40, before.ScanTime+80*time.Millisecond
	read := store.ScanStats{Rows: 100, Cells: 2, Bytes: 3, RowsScanned: 1000, RPCs: 5, Resumes: 6}
	schema := encoding.DefaultSchema()
	host := scanplan.TagPredicate{TagK: encoding.UID{0, 0, 2}, Op: scanplan.In, Values: []encoding.UID{{0, 0, 1}}}
	part := scanplan.Part{Plan: scanplan.Plan{Schema: schema, Metric: encoding.UID{0, 0, 1}, To: encoding.RowSeconds,
		Tags: []scanplan.TagPredicate{host}},
		Range: scanplan.KeyRange{Start: []byte{0, 0, 1}, Stop: []byte{0, 0, 2}}}
	for _, seeks := range []bool{true, false} {
		s := longPartScanner{part: &part, subPart: part, prefixes: access.NewPrefixCache(), seeks: seeks,
			partStats: &now, statsAtOpen: before, rows: ended{stats: read}, scanStats: read}
		if got := s.NextBytes(); got != 77 {
			t.Errorf("%d bytes are expected next, want those of the scan", got)
		}
		s.closeSubPart()
		want := store.ScanStats{Rows: 200, Cells: 4, Bytes: 6, RowsScanned: 2000, RPCs: 10, Resumes: 12}
		if got := s.Stats(); got != want || s.NextBytes() != 0 {
			t.Errorf("seeks %t: %+v of both scans, want %+v", seeks, got, want)
		}
		task, ok := s.prefixes.BeginLearning(access.CacheKey(&part))
		if ok != seeks ||
			seeks && (task.Limit != (1000-60)/access.RowsPerPrefix || task.Within != 320*time.Millisecond) {
			t.Errorf("seeks %t: %t, %+v was recorded, want 60 wanted rows of 1,000 in 80 ms", seeks, ok, task)
		}
	}

	// Of an hour with 10 ranges up to 104 unwanted rows are no waste.
	now.Rejected, read.RowsScanned = before.Rejected, 100+64+4*10
	s := longPartScanner{part: &part, subPart: part, prefixes: access.NewPrefixCache(), seeks: true, partStats: &now,
		statsAtOpen: before, rows: ended{stats: read}}
	s.closeSubPart()
	if _, ok := s.prefixes.BeginLearning(access.CacheKey(&part)); ok {
		t.Error("prefixes are learned after 104 unwanted rows, want it from 105 on")
	}
	read.RowsScanned++
	s.rows = ended{stats: read}
	s.closeSubPart()
	if _, ok := s.prefixes.BeginLearning(access.CacheKey(&part)); !ok {
		t.Error("prefixes are not learned after 105 unwanted rows")
	}
}
