// Package operator executes one part of a scan plan on a store: it scans the part's
// rows, decodes them, downsamples each series and returns batches. It runs next to a
// region server in the pushdown process and, if there is none, inside the gateway; both
// run this code and return the same batches.
//
// With per-series aggregation a part answers with the columns of each span: values of
// whole buckets, and the points of buckets that the part's ends cut. Rate, aggregation
// and filling of empty buckets come later, in the gateway, which has all parts of a
// span. With partial aggregation a part, which then consists of whole hours, answers
// with partial aggregates of each group, and with those points of series that
// neighbouring parts need. Source: the order of steps in TsdbQuery and
// AggregationIterator.
//
// The stages are those of a query engine, in one pass over each row:
//
//	access       the plan's predicates become key ranges and a row filter (ChooseAccess)
//	scan         the store returns blocks of rows
//	admit        each row key is checked again: the store may return more rows
//	decode       encoding.RowDecoder
//	downsample   downsample.Bucketer, row by row if buckets divide the hour; or window.Computer, see windows.go
//	emit         records of about FlushBytes
//
// A property test compares the pass with an implementation that downsamples batches of points in a
// separate stage (unfused_test.go).
package operator

import (
	"cmp"
	"context"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"downpour/encoding/batch"
	"downpour/pushdown/store"
)

// Operator returns the batches of one part. operatortest.Checked checks its contract:
//
//   - It is for one goroutine; only Close may be called from another, and only
//     while no Next runs.
//   - Next returns a record, which the caller owns and releases, or an error.
//     io.EOF itself means that the part is complete. Any other error, also one that wraps
//     io.EOF, means that it is not, and that everything returned before must be discarded. After an error Next
//     always returns that error.
//   - A record without rows only shows that the operator is still working.
//   - The context of the first Next bounds the whole operator, that of a later Next
//     only its call. A cancelled context ends the operator.
//   - Close ends the work, in the store too. It may be called any number of times and
//     at any time; returned records stay valid. Next after Close returns ErrClosed,
//     or the error that it had returned before.
//   - Stats may be called between other calls at any time, also after Close.
type Operator interface {
	Next(ctx context.Context) (batch.Record, error)
	Stats() Stats
	Close() error
}

// Stats counts what a part has cost and returned.
type Stats struct {
	// Rows, Cells and Bytes were delivered by the store; RowsScanned were read by its servers; RPCs
	// and Resumes are its calls, and scans opened again.
	Rows        int64 `json:"rows"`
	Cells       int64 `json:"cells"`
	Bytes       int64 `json:"bytes"`
	RowsScanned int64 `json:"rowsScanned"`
	RPCs        int64 `json:"rpcs"`
	Resumes     int64 `json:"resumes"`
	// Ranges is the number of key ranges of the scan; Probes is the number of scans that were made
	// to learn key prefixes or to probe rows, see package access.
	Ranges int64 `json:"ranges"`
	Probes int64 `json:"probes"`
	// Rejected counts delivered rows that the plan does not admit.
	Rejected int64 `json:"rejected"`
	// Points were decoded from admitted rows; Skipped counts their cells of unknown
	// kinds.
	Points  int64 `json:"points"`
	Skipped int64 `json:"skipped"`
	// Damaged counts rows that cannot be read and were skipped, for scanplan.FixDamaged; DamagedRow
	// describes the first one.
	Damaged    int64  `json:"damaged,omitempty"`
	DamagedRow string `json:"damagedRow,omitempty"`
	// Spans, Batches and ShippedBytes were returned by the part. The bytes are those of
	// the batches' columns, or those on the wire if a server executed the part.
	Spans        int64 `json:"spans"`
	Batches      int64 `json:"batches"`
	ShippedBytes int64 `json:"shippedBytes"`
	// ScanTime was spent waiting for rows of the store, DecodeTime on decoding and
	// downsampling them, EmitTime on making the last batches.
	ScanTime   time.Duration `json:"scanNanos"`
	DecodeTime time.Duration `json:"decodeNanos"`
	EmitTime   time.Duration `json:"emitNanos"`
	// For parts whose answers can be cached (package resultcache): parts answered from the cache;
	// parts read under a version token that still held at their end; those among them that were
	// cached; parts read because the rows may have changed.
	CacheHits    int64 `json:"cacheHits,omitempty"`
	CacheProven  int64 `json:"cacheProven,omitempty"`
	CacheStored  int64 `json:"cacheStored,omitempty"`
	CacheChanged int64 `json:"cacheChanged,omitempty"`
}

// Add adds the counts of another part.
func (s *Stats) Add(o Stats) {
	s.Rows += o.Rows
	s.Cells += o.Cells
	s.Bytes += o.Bytes
	s.RowsScanned += o.RowsScanned
	s.RPCs += o.RPCs
	s.Resumes += o.Resumes
	s.Ranges += o.Ranges
	s.Probes += o.Probes
	s.Rejected += o.Rejected
	s.Points += o.Points
	s.Skipped += o.Skipped
	s.Damaged += o.Damaged
	s.DamagedRow = cmp.Or(s.DamagedRow, o.DamagedRow)
	s.Spans += o.Spans
	s.Batches += o.Batches
	s.ShippedBytes += o.ShippedBytes
	s.ScanTime += o.ScanTime
	s.DecodeTime += o.DecodeTime
	s.EmitTime += o.EmitTime
	s.CacheHits += o.CacheHits
	s.CacheProven += o.CacheProven
	s.CacheStored += o.CacheStored
	s.CacheChanged += o.CacheChanged
}

// setScan sets the counts that the store keeps.
func (s *Stats) setScan(c store.ScanStats) {
	s.Rows, s.Cells, s.Bytes = c.Rows, c.Cells, c.Bytes
	s.RowsScanned, s.RPCs, s.Resumes = c.RowsScanned, c.RPCs, c.Resumes
}

// RecordBytes returns the bytes of a record's columns.
func RecordBytes(r batch.Record) (n int64) {
	for _, c := range r.Columns() {
		n += dataBytes(c.Data())
	}
	return n
}

// dataBytes returns the bytes of a column. ArrayData.SizeInBytes would do the same, but it fails if
// a buffer is missing.
func dataBytes(d arrow.ArrayData) (n int64) {
	for _, b := range d.Buffers() {
		if b != nil {
			n += int64(b.Len())
		}
	}
	for _, c := range d.Children() {
		n += dataBytes(c)
	}
	return n
}
