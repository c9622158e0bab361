package operator

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/store"
)

// probedRanges returns the number of key ranges that each hour of the part can have, if the part has so
// many hours that a probe of its rows decides where it seeks to these ranges; else 0.
func (b *accessBuilder) probedRanges(cache *access.PrefixCache) int {
	// The range must have an end, and keys between its bounds base times.
	if !bytes.HasPrefix(b.part.Range.Stop, b.part.Range.Start[:b.plan.Schema.BaseTimeAt()]) {
		return 0
	}
	if n := b.rangesPerHour(cache); access.NeedsProbe(b.baseTimes(), n) {
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

// byProbes returns the access path of a part that probes its rows, each of whose hours can have so many
// ranges. Its filter is that of sections that are not read by seeking.
func (b *accessBuilder) byProbes(ranges int) Access {
	var a Access
	if tags := b.tsuidTags(); len(tags) > 0 {
		a = b.manyTSUIDs(tags)
	} else {
		a = b.byPattern()
	}
	a.ProbedRanges = ranges
	a.Reason = fmt.Sprintf("%d ranges an hour where hours have many rows, else %s", ranges, a.Reason)
	return a
}

// longPartScanner reads the rows of a long part, section by section. A probe of the first rows of a
// section shows which way of reading it costs less, and one at its end whether that still holds
// there. Hours without rows between two sections cost nothing.
type longPartScanner struct {
	ctx       context.Context
	from      store.Reader
	part      *scanplan.Part
	path      Access // of the whole part
	prefixes  *access.PrefixCache
	scan      store.Scan // of the whole part
	partStats *Stats     // of the part's operator

	// The rows that are still to be read begin at the key restStart, in or after the row hour
	// restFrom, and end before the base time rowsEnd: that of the part, or of its last rows.
	// nextProbe is a probe of the first of them, nil if there was none. Base times are in s.
	restStart         []byte
	restFrom, rowsEnd int64
	nextProbe         *probe
	// The section: whether it is read by seeking, its hours, and the base time of its end.
	seeks        bool
	sectionHours int64
	sectionEnd   int64

	// The part of the section that is being read, whose key ranges are few enough for one scan.
	subPart     scanplan.Part
	rows        store.Scanner   // of subPart; nil between two of them
	statsAtOpen Stats           // copy of *partStats when subPart was opened
	scanStats   store.ScanStats // of the scans that are closed, and of probes
}

// probe has in addition the key and the base time of the first row.
type probe struct {
	access.Probe
	first []byte
	base  int64
}

func newLongScanner(ctx context.Context, from store.Reader, part *scanplan.Part, path Access,
	prefixes *access.PrefixCache, scan store.Scan, of *Stats) *longPartScanner {
	first, to := (&accessBuilder{plan: &part.Plan, part: part}).hours()
	return &longPartScanner{ctx: ctx, from: from, part: part, path: path, prefixes: prefixes, scan: scan, partStats: of,
		restStart: scan.Start, restFrom: first, sectionEnd: first, rowsEnd: to}
}

// Next returns the next rows, io.EOF after the last. They are valid until the next call.
func (s *longPartScanner) Next() ([]store.Row, error) {
	for {
		if s.rows == nil {
			if err := s.openSubPart(); err != nil {
				return nil, err
			}
		}
		rows, err := s.rows.Next()
		if err != io.EOF {
			return rows, err
		}
		s.closeSubPart()
	}
}

// openSubPart opens s.rows, the scan of the next sub-part that can have rows, or returns io.EOF.
func (s *longPartScanner) openSubPart() error {
	for s.rows == nil {
		if s.restFrom >= s.sectionEnd {
			if err := s.chooseSection(); err != nil {
				return err
			}
		}
		if s.seeks {
			s.partStats.Probes += learnPrefixes(s.ctx, s.from, s.part, s.prefixes)
		}
		s.cutSubPart()
		path := s.path
		if s.seeks {
			plan := &s.subPart.Plan
			path = (&accessBuilder{plan: plan, part: &s.subPart, tags: plan.Tags}).choose(s.prefixes)
		}
		keys, ok := scanOf(&s.subPart, path)
		if !ok {
			continue
		}

		scan := s.scan
		scan.Start, scan.Stop, scan.Filter = keys.Start, keys.Stop, keys.Filter
		rows, err := s.from.Scan(s.ctx, scan)
		if err != nil {
			return err
		}
		s.rows, s.statsAtOpen = rows, *s.partStats
		s.partStats.Ranges += int64(len(scan.Filter.Ranges))
	}
	return nil
}

// cutSubPart sets s.subPart to the next part of the section, and moves the rest behind it.
func (s *longPartScanner) cutSubPart() {
	end := s.sectionEnd
	if s.seeks {
		end = min(end, s.rowsAfter(s.restFrom, int64(maxRanges/(s.rangesPerHour()+1))))
	}
	s.subPart = *s.part
	if bytes.Compare(s.restStart, s.subPart.Range.Start) > 0 {
		s.subPart.Range.Start = s.restStart
	}
	// The part's own end may be inside a row.
	if stop := s.part.Plan.HourKey(s.part.Range, end); bytes.Compare(stop, s.subPart.Range.Stop) < 0 {
		s.subPart.Range.Stop = stop
	}
	s.restStart, s.restFrom = s.subPart.Range.Stop, end
}

// closeSubPart closes the scan of a sub-part whose rows were all read, and records what it cost.
func (s *longPartScanner) closeSubPart() {
	read := s.rows.Stats()
	_ = s.rows.Close() // its error changes nothing that was returned
	s.rows = nil
	s.scanStats = addScans(s.scanStats, read)
	if s.seeks {
		cost := Stats{
			Ranges:   s.partStats.Ranges - s.statsAtOpen.Ranges,
			Rejected: s.partStats.Rejected - s.statsAtOpen.Rejected,
			ScanTime: s.partStats.ScanTime - s.statsAtOpen.ScanTime,
		}
		cost.setScan(read)
		recordScan(s.prefixes, &s.subPart, cost)
	}
}

// rangesPerHour is the number of key ranges that an hour can have, by the key prefixes that are known now.
func (s *longPartScanner) rangesPerHour() int {
	return cmp.Or((&accessBuilder{plan: &s.part.Plan, part: s.part, tags: s.part.Plan.Tags}).rangesPerHour(s.prefixes),
		s.path.ProbedRanges)
}

// chooseSection sets the hours of the next section, and by a probe of its first rows whether it is read by
// seeking. A probe at its end shortens the section until both ends are read in the same way. It returns
// io.EOF if no rows are left.
func (s *longPartScanner) chooseSection() error {
	if s.restFrom >= s.rowsEnd {
		return io.EOF
	}
	here := s.nextProbe
	if s.nextProbe = nil; here == nil {
		var err error
		if here, err = s.probe(s.restStart); err != nil {
			return err
		}
	}
	if s.restFrom = max(s.restFrom, here.base); here.Rows == 0 || s.restFrom >= s.rowsEnd {
		s.restFrom = s.rowsEnd
		return io.EOF
	}

	s.restStart = here.first
	if here.All {
		s.seeks, s.sectionEnd = false, s.rowsEnd
		return nil
	}
	ranges := s.rangesPerHour()
	seeks := here.Seeks(ranges) //fault:long-part-read-the-dearer-way TestLong_cost
	if seeks != s.seeks {
		s.sectionHours = 0
	}
	s.seeks, s.sectionHours = seeks, here.Section(s.sectionHours)
	for more := true; more; {
		s.sectionEnd = s.rowsAfter(s.restFrom, s.sectionHours)
		there, err := s.probeSectionEnd()
		if err != nil || there == nil || there.Rows > 0 && there.Seeks(ranges) == seeks {
			return err
		}
		s.sectionHours, more = access.Shorter(min(s.sectionHours, s.part.Plan.Rows(s.restFrom, s.sectionEnd)))
	}
	return nil
}

// probeSectionEnd probes the rows after the section, or, where the rows of the part end, the last rows in the section.
// It returns nil for a short section at the end of the part. It keeps a probe of the rows after the section as
// nextProbe, and sets rowsEnd and sectionEnd back where it finds no rows.
func (s *longPartScanner) probeSectionEnd() (*probe, error) {
	at := s.sectionEnd
	if at == s.rowsEnd {
		if at = s.part.Plan.RowBase(s.rowsEnd - access.ShortSection*encoding.RowSeconds); at <= s.restFrom {
			return nil, nil
		}
	}
	there, err := s.probe(s.part.Plan.HourKey(s.part.Range, at))
	if err != nil {
		return nil, err
	}
	if s.nextProbe = nil; at == s.sectionEnd {
		s.nextProbe = there
	}
	if there.Rows == 0 {
		s.rowsEnd, s.sectionEnd = at, at
	}
	return there, nil
}

// maxProbeBlock bounds the memory of a probe, in bytes: its rows are counted, not kept.
const maxProbeBlock = 1 << 20

// probe counts the first rows of the part from a key on.
func (s *longPartScanner) probe(from []byte) (*probe, error) {
	p, last, plan := &probe{}, int64(0), &s.part.Plan
	rows, size := access.ProbeSize(s.rangesPerHour())
	s.partStats.Probes++
	scan := store.Scan{
		Table:      plan.Table,
		Family:     encoding.FamilyData,
		Start:      from,
		Stop:       s.scan.Stop,
		MaxRows:    rows,
		BlockBytes: int(min(size, maxProbeBlock)),
	}
	p.All = true
	for block, err := range store.Blocks(s.ctx, s.from, scan) {
		if err != nil {
			return nil, err
		}
		if p.first == nil {
			p.first = bytes.Clone(block[0].Key)
			p.base = s.baseTime(p.first)
		}
		p.Rows, last = p.Rows+int64(len(block)), s.baseTime(block[len(block)-1].Key)
		for i := range block {
			p.Bytes += bytesOf(&block[i])
		}
		if p.All = p.Rows < int64(rows) && p.Bytes < size; !p.All {
			break
		}
	}
	if p.Rows > 0 {
		p.Hours = plan.Rows(p.base, plan.NextRow(last))
	}
	s.scanStats.RowsScanned += p.Rows
	return p, nil
}

// bytesOf is about the bytes that a server keeps of a row, which has its key in each cell.
func bytesOf(r *store.Row) (n int64) {
	for _, c := range r.Cells {
		n += int64(len(r.Key) + len(c.Qualifier) + len(c.Value) + 20)
	}
	return n
}

// baseTime returns the base time that a row with this key has, in s, or would have at a full hour.
func (s *longPartScanner) baseTime(key []byte) int64 {
	return s.part.Plan.RowBase(keyTime(key, s.part.Plan.Schema.BaseTimeAt()))
}

// rowsAfter returns the base time that is n row hours after another, at most the end of the rows.
func (s *longPartScanner) rowsAfter(base, n int64) int64 {
	for ; n > 0 && base < s.rowsEnd; n-- {
		base = s.part.Plan.NextRow(base)
	}
	return min(base, s.rowsEnd)
}

// NextBytes implements store.Scanner. Before the first scan nothing is known.
func (s *longPartScanner) NextBytes() int64 {
	if s.rows == nil {
		return 0
	}
	return s.rows.NextBytes()
}

// Stats returns what all scans have cost so far.
func (s *longPartScanner) Stats() store.ScanStats {
	if s.rows == nil {
		return s.scanStats
	}
	return addScans(s.scanStats, s.rows.Stats())
}

func addScans(a, b store.ScanStats) store.ScanStats {
	return store.ScanStats{
		Rows: a.Rows + b.Rows, Cells: a.Cells + b.Cells, Bytes: a.Bytes + b.Bytes,
		RowsScanned: a.RowsScanned + b.RowsScanned, RPCs: a.RPCs + b.RPCs, Resumes: a.Resumes + b.Resumes,
	}
}

// Close ends the scan.
func (s *longPartScanner) Close() error {
	if s.rows == nil {
		return nil
	}
	return s.rows.Close()
}
