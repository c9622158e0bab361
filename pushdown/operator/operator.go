// Package operator executes one part of a scan plan on a store: it scans the
// part's rows, decodes them, downsamples each series and yields series batches.
// It runs beside a region server in the pushdown process and, when there is
// none, inside the gateway; both run this code and hand on the same batches.
//
// A strict part answers per span: whole buckets as values, and buckets that the
// part's edges cut as the points they hold. Rate, aggregation and filling empty
// buckets come later, where all parts of a span are known. A partial part, of
// whole hours, answers per group: the aggregator's states, and those points of
// series that the next hours must know. Source: the order of steps in TsdbQuery
// and AggregationIterator.
//
// The stages are those of a query engine, fused into one pass over a row:
//
//	scan         the plan's predicates become a store.RowFilter (Explain)
//	admit        each row key is checked again, a filter may let more through
//	decode       encoding.RowDecoder
//	downsample   downsample.Bucketer, per row where buckets divide the hour
//	emit         records of about FlushBytes
//
// unfused_test.go has the last but one stage on its own, over batches of points;
// that the fused pass equals it is a property test.
package operator

import (
	"context"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"downpour/encoding/batch"
	"downpour/pushdown/store"
)

// Operator yields series batches. The contract, which operatortest.Checked enforces:
//
//   - It is for one goroutine; only Close may be called from another, and only
//     while no Next runs.
//   - Next returns a record, which the caller owns and releases, or an error.
//     io.EOF says that the part is complete; any other error that it is not, and
//     then everything the operator returned before must be thrown away. After an
//     error every further Next returns the same error.
//   - A record with no rows is a sign of life and carries nothing.
//   - The context of the first Next bounds the whole operator, that of a later
//     one its call; a cancelled context ends the operator.
//   - Close ends the work, at the store too. It may be called any number of
//     times, before the end as well; records handed out stay valid. Next after
//     Close returns ErrClosed, or the error that it had returned before.
//   - Stats may be called at any time between other calls, after Close too.
type Operator interface {
	Next(ctx context.Context) (batch.Record, error)
	Stats() Stats
	Close() error
}

// Stats counts what a part has cost and brought.
type Stats struct {
	// Rows, Cells, Bytes are what the store delivered; RowsScanned what its
	// servers looked at; RPCs and Resumes its calls and reopenings.
	Rows        int64 `json:"rows"`
	Cells       int64 `json:"cells"`
	Bytes       int64 `json:"bytes"`
	RowsScanned int64 `json:"rowsScanned"`
	RPCs        int64 `json:"rpcs"`
	Resumes     int64 `json:"resumes"`
	// Ranges of keys were sought; Probes are scans of one row that were made to
	// learn what later parts can skip, see package seek.
	Ranges int64 `json:"ranges"`
	Probes int64 `json:"probes"`
	// Rejected counts delivered rows that the plan does not admit.
	Rejected int64 `json:"rejected"`
	// Points were decoded from the admitted rows; Skipped counts cells of
	// unknown kinds in them.
	Points  int64 `json:"points"`
	Skipped int64 `json:"skipped"`
	// Spans, Batches and ShippedBytes are what the part returned; the bytes
	// are those of the batches' columns, of a server's those on the wire.
	Spans        int64 `json:"spans"`
	Batches      int64 `json:"batches"`
	ShippedBytes int64 `json:"shippedBytes"`
	// ScanTime was spent waiting for the store's rows, FoldTime on decoding and
	// downsampling them, EmitTime on making the last batches.
	ScanTime time.Duration `json:"scanNanos"`
	FoldTime time.Duration `json:"foldNanos"`
	EmitTime time.Duration `json:"emitNanos"`
	// Of parts whose answers may be remembered (package resultcache): answered from
	// memory; read and kept; read because the rows may have changed.
	CacheHits    int64 `json:"cacheHits,omitempty"`
	CacheStored  int64 `json:"cacheStored,omitempty"`
	CacheChanged int64 `json:"cacheChanged,omitempty"`
}

// Add adds another part's counts.
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
	s.Spans += o.Spans
	s.Batches += o.Batches
	s.ShippedBytes += o.ShippedBytes
	s.ScanTime += o.ScanTime
	s.FoldTime += o.FoldTime
	s.EmitTime += o.EmitTime
	s.CacheHits += o.CacheHits
	s.CacheStored += o.CacheStored
	s.CacheChanged += o.CacheChanged
}

// setScan takes over the store's counts.
func (s *Stats) setScan(c store.ScanStats) {
	s.Rows, s.Cells, s.Bytes = c.Rows, c.Cells, c.Bytes
	s.RowsScanned, s.RPCs, s.Resumes = c.RowsScanned, c.RPCs, c.Resumes
}

// RecordBytes is the size of a record's columns.
func RecordBytes(r batch.Record) (n int64) {
	for _, c := range r.Columns() {
		n += dataBytes(c.Data())
	}
	return n
}

// dataBytes does without ArrayData.SizeInBytes, which fails on a missing buffer.
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
