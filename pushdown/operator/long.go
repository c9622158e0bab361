package operator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/store"
)

// isLong returns the number of key ranges that each hour of the part can have, if its hours are so
// many that its rows decide whether it seeks; else 0.
func (b *accessBuilder) isLong(cache *access.PrefixCache) int {
	// Keys between the bounds must have base times.
	if !bytes.HasPrefix(b.part.Range.Stop, b.part.Range.Start[:b.plan.Schema.BaseTimeAt()]) {
		return 0
	}
	if n := b.rangesPerHour(cache); access.Long(b.baseTimes(), n) {
		return n
	}
	return 0
}

// rangesPerHour is the number of key ranges that each hour of the part can have if it seeks to its
// rows, without gaps, which mostly touch others; 0 if it cannot.
func (b *accessBuilder) rangesPerHour(cache *access.PrefixCache) (n int) {
	switch {
	case b.impossible():
		return 0
	case len(b.plan.TSUIDs) > 0:
		n = len(b.tsuidTags())
	case b.firstTagOnly():
		n = len(b.tags[0].Values)
	default:
		known := cache.Lookup(access.CacheKey(b.part))
		for i, t := range access.Wanted(b.plan) {
			const hours = 1
			if p := b.prefixes(t, known, i, hours); p != nil {
				n += p.MaxRanges(len(t.Values))
			}
		}
	}
	if n >= maxRanges { // an hour may have one range more, of an off-hour row
		return 0
	}
	return n
}

// byProbes returns the access path of a long part, each of whose hours can have so many ranges.
func (b *accessBuilder) byProbes(ranges int) Access {
	var a Access
	if tags := b.tsuidTags(); len(tags) > 0 {
		a = b.manyTSUIDs(tags)
	} else {
		a = b.byPattern()
	}
	a.Long = ranges
	a.Reason = fmt.Sprintf("%d ranges an hour where hours have many rows, else %s", ranges, a.Reason)
	return a
}

// longScanner reads the rows of a long part, section by section. A probe of the first rows of a
// section shows which way of reading it costs less, and one at its end whether that still holds
// there. Hours without rows between two sections cost nothing.
type longScanner struct {
	ctx      context.Context
	from     store.Reader
	part     *scanplan.Part
	path     Access // of the whole part
	prefixes *access.PrefixCache
	scan     store.Scan // of the whole part
	of       *Stats     // of the part's operator

	// The remaining rows begin at a key, which is of a base time or after it, and end before
	// another base time: the end of the part, or of its last rows. ahead is a probe of them, nil if
	// there was none.
	at            []byte
	next, to, end int64
	ahead         *probe
	// Of the section: whether it seeks, its hours, and the base time of its end.
	seeks bool
	hours int64
	until int64

	// A piece of the section, small enough for the ranges of one scan.
	piece scanplan.Part
	rows  store.Scanner   // nil between two pieces
	began Stats           // copy of *of from when the piece began
	stats store.ScanStats // of the pieces before and of probes
}

// probe has in addition the key and the base time of the first row.
type probe struct {
	access.Probe
	first []byte
	base  int64
}

func newLongScanner(ctx context.Context, from store.Reader, part *scanplan.Part, path Access,
	prefixes *access.PrefixCache, scan store.Scan, of *Stats) *longScanner {
	first, to := (&accessBuilder{plan: &part.Plan, part: part}).hours()
	return &longScanner{ctx: ctx, from: from, part: part, path: path, prefixes: prefixes, scan: scan, of: of,
		at: scan.Start, next: first, until: first, to: to, end: to}
}

// Next returns the next rows; see store.Scanner.
func (s *longScanner) Next() ([]store.Row, error) {
	for {
		if s.rows == nil {
			if err := s.openPiece(); err != nil {
				return nil, err
			}
		}
		rows, err := s.rows.Next()
		if !errors.Is(err, io.EOF) {
			return rows, err
		}
		s.endPiece()
	}
}

// openPiece opens the scan of the next piece that can have rows, or returns io.EOF.
func (s *longScanner) openPiece() error {
	for s.rows == nil {
		if s.next >= s.until {
			if err := s.decide(); err != nil {
				return err
			}
		}
		if s.seeks {
			s.of.Probes += learnPrefixes(s.ctx, s.from, s.part, s.prefixes)
		}
		s.takePiece()
		path := s.path
		if s.seeks {
			path = (&accessBuilder{plan: &s.piece.Plan, part: &s.piece, tags: s.piece.Plan.Tags}).choose(s.prefixes)
		}
		if path.Nothing {
			continue
		}

		scan := scanOf(&s.piece, path)
		scan.BlockBytes, scan.Columns, scan.MostInColumns, scan.KeysOnly = s.scan.BlockBytes, s.scan.Columns,
			s.scan.MostInColumns, s.scan.KeysOnly
		rows, err := s.from.Scan(s.ctx, scan)
		if err != nil {
			return err
		}
		s.rows, s.began = rows, *s.of
		s.of.Ranges += int64(len(scan.Filter.Ranges))
	}
	return nil
}

// takePiece cuts a piece off the rest of the section.
func (s *longScanner) takePiece() {
	end := s.until
	if s.seeks {
		end = min(end, s.after(s.next, int64(maxRanges/(s.ranges()+1))))
	}
	s.piece = *s.part
	if bytes.Compare(s.at, s.piece.Range.Start) > 0 {
		s.piece.Range.Start = s.at
	}
	if end < s.end {
		s.piece.Range.Stop = s.part.Plan.HourKey(s.part.Range, end)
	}
	s.at, s.next = s.piece.Range.Stop, end
}

// endPiece closes a piece whose rows were all read.
func (s *longScanner) endPiece() {
	read := s.rows.Stats()
	_ = s.rows.Close() // its error changes nothing that was returned
	s.rows = nil
	s.stats = addScans(s.stats, read)
	if s.seeks {
		cost := Stats{
			Ranges:   s.of.Ranges - s.began.Ranges,
			Rejected: s.of.Rejected - s.began.Rejected,
			ScanTime: s.of.ScanTime - s.began.ScanTime,
		}
		cost.setScan(read)
		recordScan(s.prefixes, &s.piece, cost)
	}
}

// ranges is the number of key ranges that an hour can have, by current knowledge.
func (s *longScanner) ranges() int {
	return cmp.Or((&accessBuilder{plan: &s.part.Plan, part: s.part, tags: s.part.Plan.Tags}).rangesPerHour(s.prefixes),
		s.path.Long)
}

// decide makes the next section, or returns io.EOF.
func (s *longScanner) decide() error {
	if s.next >= s.to {
		return io.EOF
	}
	here := s.ahead
	if s.ahead = nil; here == nil {
		var err error
		if here, err = s.probe(s.at); err != nil {
			return err
		}
	}
	if s.next = max(s.next, here.base); here.Rows == 0 || s.next >= s.to {
		s.next = s.to
		return io.EOF
	}

	s.at = here.first
	if here.All {
		s.seeks, s.until = false, s.to
		return nil
	}
	ranges := s.ranges()
	seeks := here.Seeks(ranges) //fault:long-part-read-the-dearer-way TestLong_cost
	if seeks != s.seeks {
		s.hours = 0
	}
	s.seeks, s.hours = seeks, here.Section(s.hours)
	for more := true; more; {
		s.until = s.after(s.next, s.hours)
		there, err := s.probeEnd()
		if err != nil || there == nil || there.Rows > 0 && there.Seeks(ranges) == seeks {
			return err
		}
		s.hours, more = access.Shorter(min(s.hours, s.part.Plan.Rows(s.next, s.until)))
	}
	return nil
}

// probeEnd probes the rows after the section, or, where the rows of the part end, the last ones in
// it. It returns nil for a short section.
func (s *longScanner) probeEnd() (*probe, error) {
	at := s.until
	if at == s.to {
		if at = s.part.Plan.RowBase(s.to - access.ShortSection*encoding.RowSeconds); at <= s.next {
			return nil, nil
		}
	}
	there, err := s.probe(s.part.Plan.HourKey(s.part.Range, at))
	if err != nil {
		return nil, err
	}
	if s.ahead = nil; at == s.until {
		s.ahead = there
	}
	if there.Rows == 0 {
		s.to, s.until = at, at
	}
	return there, nil
}

// maxProbeBlock bounds the memory of a probe, in bytes: its rows are counted, not kept.
const maxProbeBlock = 1 << 20

// probe counts the first rows of the part from a key on.
func (s *longScanner) probe(from []byte) (*probe, error) {
	l, last, p := &probe{}, int64(0), &s.part.Plan
	rows, size := access.ProbeSize(s.ranges())
	s.of.Probes++
	scan := store.Scan{
		Table:      p.Table,
		Family:     encoding.FamilyData,
		Start:      from,
		Stop:       s.scan.Stop,
		MaxRows:    rows,
		BlockBytes: int(min(size, maxProbeBlock)),
	}
	l.All = true
	for block, err := range store.Blocks(s.ctx, s.from, scan) {
		if err != nil {
			return nil, err
		}
		if l.first == nil {
			l.first = bytes.Clone(block[0].Key)
			l.base = s.baseTime(l.first)
		}
		l.Rows, last = l.Rows+int64(len(block)), s.baseTime(block[len(block)-1].Key)
		for i := range block {
			l.Bytes += bytesOf(&block[i])
		}
		if l.All = l.Rows < int64(rows) && l.Bytes < size; !l.All {
			break
		}
	}
	if l.Rows > 0 {
		l.Hours = p.Rows(l.base, p.NextRow(last))
	}
	s.stats.RowsScanned += l.Rows
	return l, nil
}

// bytesOf is about the bytes that a server keeps of a row, which has its key in each cell.
func bytesOf(r *store.Row) (n int64) {
	for _, c := range r.Cells {
		n += int64(len(r.Key) + len(c.Qualifier) + len(c.Value) + 20)
	}
	return n
}

// baseTime returns the base time that a row with this key has, in s, or would have at a full hour.
func (s *longScanner) baseTime(key []byte) int64 {
	var base [encoding.BaseTimeWidth]byte
	copy(base[:], key[min(len(key), s.part.Plan.Schema.BaseTimeAt()):])
	return s.part.Plan.RowBase(int64(binary.BigEndian.Uint32(base[:])))
}

// after returns the base time that comes n rows after one, at most the end of the part.
func (s *longScanner) after(base, n int64) int64 {
	for ; n > 0 && base < s.to; n-- {
		base = s.part.Plan.NextRow(base)
	}
	return min(base, s.to)
}

// NextBytes implements store.Scanner. Before the first scan nothing is known.
func (s *longScanner) NextBytes() int64 {
	if s.rows == nil {
		return 0
	}
	return s.rows.NextBytes()
}

// Stats returns what all scans have cost so far.
func (s *longScanner) Stats() store.ScanStats {
	if s.rows == nil {
		return s.stats
	}
	return addScans(s.stats, s.rows.Stats())
}

func addScans(a, b store.ScanStats) store.ScanStats {
	return store.ScanStats{
		Rows: a.Rows + b.Rows, Cells: a.Cells + b.Cells, Bytes: a.Bytes + b.Bytes,
		RowsScanned: a.RowsScanned + b.RowsScanned, RPCs: a.RPCs + b.RPCs, Resumes: a.Resumes + b.Resumes,
	}
}

// Close ends the scan.
func (s *longScanner) Close() error {
	if s.rows == nil {
		return nil
	}
	return s.rows.Close()
}
