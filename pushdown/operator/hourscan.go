package operator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// hourScan reads the rows of one hour of a part on a goroutine of its own and passes on their
// contents, block by block. It is at most aheadBlocks blocks ahead of its reader.
type hourScan struct {
	from    store.Reader
	part    *scanplan.Part // of the one hour
	opts    Options
	admit   admission
	checks  bool // the plan admits some series only
	hour    hourDownsampler
	decoder encoding.RowDecoder
	span    []byte
	stats   Stats

	// Bytes, for the reservation of memory: what the store has estimated at most for a block of rows,
	// the largest block of rows so far (at first what openScan holds for split rows), and the largest
	// hourBlock so far. All blocks share one lease.
	rowBlockEstimate, largestRowBlock, largestHourBlock int64
	memory                                              *memory.Lease

	filled chan *hourBlock // closed at the end
	empty  chan *hourBlock

	// Of the reader, on another goroutine: the counts of the blocks that it has taken, its current
	// block, the index of its series there, and the tags of that.
	taken Stats
	block *hourBlock
	row   int
	tags  []byte
}

// aheadBlocks is the number of blocks of an hour: one that is read, and those that wait.
const aheadBlocks = 3

// hourBlock is what a block of rows holds: series in ascending order of their tags, each
// with buckets or annotations. Series i has the tags tags[tagsTo[i-1]:tagsTo[i]], and its
// buckets likewise.
type hourBlock struct {
	tags   []byte
	tagsTo []int32
	times  []int64
	values []float64
	to     []int32   // ends of the series' buckets in times and values
	notes  []rowNote // ascending by series

	stats Stats // of the hour so far
	err   error // ends the hour; nil with series
}

// rowNote is an annotation of the series with an index in its block.
type rowNote struct {
	series int32
	text   []byte
}

func newHourScan(from store.Reader, part *scanplan.Part, opts Options, hour hourDownsampler) *hourScan {
	p := &part.Plan
	h := &hourScan{
		from: from, part: part, opts: opts, admit: newAdmission(part), hour: hour,
		checks: len(p.Tags) > 0 || p.Exact || len(p.TSUIDs) > 0,
		filled: make(chan *hourBlock, aheadBlocks), empty: make(chan *hourBlock, aheadBlocks),
	}
	h.decoder.FixDuplicates = p.FixDuplicates
	for range aheadBlocks {
		h.empty <- &hourBlock{}
	}
	return h
}

// run reads the hour until its end, which is the last block's error: io.EOF, or why the
// rest is missing. It returns without one if ctx ends while no reader takes blocks.
func (h *hourScan) run(ctx context.Context) {
	defer close(h.filled)
	last := &hourBlock{}
	defer func() {
		// A panic on this goroutine would end the process; it fails the part instead.
		if v := recover(); v != nil {
			last.err = Recovered(v)
		}
		last.stats = h.stats
		select {
		case h.filled <- last:
		case <-ctx.Done():
		}
	}()
	last.err = h.scan(ctx)
}

// reserve reserves the memory of the next block before it is read, and what the blocks
// before it took beyond what was expected.
func (h *hourScan) reserve(s store.Scanner) error {
	// A larger block of rows makes a larger block of contents.
	next, growth := s.NextBytes(), int64(1)
	if next > h.rowBlockEstimate {
		h.rowBlockEstimate, growth = next, 2
	}
	rowBlock := max(h.rowBlockEstimate, h.largestRowBlock)
	hourBlock := max(h.largestHourBlock*growth, next/8)
	return h.memory.Grow(rowBlock + aheadBlocks*hourBlock)
}

// scan reads the hour block by block. It returns io.EOF at its end.
func (h *hourScan) scan(ctx context.Context) error {
	table := h.part.Plan.Table
	h.memory = memory.NewLease(ctx)
	path := ChooseAccess(h.part, h.opts.Prefixes)
	scan, ok := scanOf(h.part, path)
	if !ok {
		return io.EOF
	}
	h.stats.Ranges = int64(len(path.Filter.Ranges))
	scan.BlockBytes = h.opts.BlockBytes
	scanner, splitBytes, err := openScan(ctx, h.from, h.part, path, h.opts.Prefixes, scan, &h.stats)
	if err != nil {
		return withCause(ctx, fmt.Errorf("operator: cannot scan %s: %w", table, err))
	}
	defer scanner.Close() // its error changes nothing that was returned
	h.largestRowBlock = splitBytes

	for {
		if err := h.reserve(scanner); err != nil {
			return err
		}
		var b *hourBlock
		select {
		case b = <-h.empty:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		began, before := time.Now(), h.stats
		rows, err := scanner.Next()
		h.stats.setScan(scanner.Stats())
		got := time.Now()
		h.stats.ScanTime += got.Sub(began)
		switch {
		case err == io.EOF:
			// Only a complete scan shows whether known key prefixes would have saved reads.
			RecordScan(h.opts.Prefixes, h.part, h.stats)
			return io.EOF
		case err != nil:
			return withCause(ctx, fmt.Errorf("operator: cannot scan %s: %w", table, err))
		}

		b.reset()
		for i := range rows {
			if err := h.stats.leaveOut(&h.part.Plan, h.addRow(b, &rows[i])); err != nil {
				return err
			}
		}
		h.stats.DecodeTime += time.Since(got)
		b.stats = h.stats
		h.largestRowBlock = max(h.largestRowBlock, blockBytes(before, h.stats))
		h.largestHourBlock = max(h.largestHourBlock, b.capacity())
		// There is room for all blocks.
		h.filled <- b
	}
}

// drop frees what the hour holds but the counts, once run has ended or was never called. It
// may be called more than once.
func (h *hourScan) drop() {
	h.block, h.filled, h.empty = nil, nil, nil
	if h.memory != nil {
		h.memory.Close()
	}
}

// addRow adds what a row holds to the block.
func (h *hourScan) addRow(b *hourBlock, r *store.Row) error {
	p := &h.part.Plan
	key, err := p.Schema.ParseRowKey(r.Key)
	if err != nil {
		return dataError(p, r.Key, err)
	}
	if err := h.admit.refuseOffHour(r.Key, key); err != nil {
		return err
	}
	if !h.admits(r.Key, key) {
		h.stats.Rejected++
		return nil
	}

	n := 0
	b.times, b.values, n, err = h.hour.appendHour(b.times, b.values, key.BaseTime, &h.decoder, r.Cells)
	if err != nil {
		return dataError(p, r.Key, err)
	}
	h.stats.Points += int64(n)
	h.stats.Skipped += int64(h.decoder.Skipped())
	notes := h.decoder.Annotations()
	// A series with neither points nor annotations is no member of its group.
	if n == 0 && len(notes) == 0 {
		return nil
	}
	for _, text := range notes { // copies: they are views into the store's block
		b.notes = append(b.notes, rowNote{int32(len(b.to)), bytes.Clone(text)})
	}
	b.tags = append(b.tags, key.Tags...)
	b.tagsTo, b.to = append(b.tagsTo, int32(len(b.tags))), append(b.to, int32(len(b.times)))
	return nil
}

// admits reports whether the plan wants a row. The store may return others, too.
func (h *hourScan) admits(key []byte, k encoding.RowKey) bool {
	if !h.admit.row(key, k) {
		return false
	}
	if !h.checks {
		return true
	}
	h.span = h.part.Plan.Schema.AppendSpan(h.span[:0], key)
	return h.admit.span(h.span)
}

// next moves the reader to the hour's next series. It returns io.EOF after the last one,
// and an error if series do not ascend: merging hours would tear one in two. onBlock is called
// with each block that it takes.
func (h *hourScan) next(ctx context.Context, onBlock func(*hourBlock) error) error {
	for h.row++; h.block == nil || h.row >= len(h.block.to); h.row = 0 {
		if h.block != nil {
			// The tags of its last series are compared with those of the next one.
			h.tags = bytes.Clone(h.tags)
			h.empty <- h.block // there is room for all blocks
		}
		b, ok := <-h.filled
		if !ok {
			return context.Cause(ctx)
		}
		if err := onBlock(b); err != nil {
			return err
		}
		if b.err != nil {
			return b.err
		}
		h.block = b
	}

	tags := h.block.tagsOf(h.row)
	if h.tags != nil && bytes.Compare(h.tags, tags) >= 0 {
		return fmt.Errorf("operator: the store returned a row with tags %X after %X", tags, h.tags)
	}
	h.tags = tags
	return nil
}

// buckets returns those of the series that the reader is at.
func (h *hourScan) buckets() (times []int64, values []float64) {
	from, to := h.block.bucketsOf(h.row)
	return h.block.times[from:to], h.block.values[from:to]
}

// appendNotes appends the annotations of the series that the reader is at.
func (h *hourScan) appendNotes(dst [][]byte) [][]byte {
	b := h.block
	for ; len(b.notes) > 0 && int(b.notes[0].series) <= h.row; b.notes = b.notes[1:] {
		dst = append(dst, b.notes[0].text)
	}
	return dst
}

func (b *hourBlock) tagsOf(i int) []byte {
	if i == 0 {
		return b.tags[:b.tagsTo[0]]
	}
	return b.tags[b.tagsTo[i-1]:b.tagsTo[i]]
}

func (b *hourBlock) bucketsOf(i int) (from, to int32) {
	if i > 0 {
		from = b.to[i-1]
	}
	return from, b.to[i]
}

// reset empties the block; its memory is used again.
func (b *hourBlock) reset() {
	b.tags, b.tagsTo, b.times, b.values, b.to = b.tags[:0], b.tagsTo[:0], b.times[:0], b.values[:0], b.to[:0]
	b.notes = nil
}

// capacity is about the bytes that the block keeps.
func (b *hourBlock) capacity() int64 {
	n := cap(b.tags) + 4*(cap(b.tagsTo)+cap(b.to)) + bucketBytes*cap(b.times)
	for i := range b.notes {
		n += len(b.notes[i].text) + 32
	}
	return int64(n)
}
