package hbase

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/cellblock"
	"downpour/pushdown/store/hbase/regions"

	"github.com/tsuna/gohbase/pb"
)

// Scan prepares a scan; nothing is sent before the first Next. The rows come
// region by region. While the caller works on one block of rows, the server
// already prepares the next.
func (st *Store) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	filters, err := newScanFilters(&s)
	if err != nil {
		return nil, fmt.Errorf("cannot scan table %q: %w", s.Table, err)
	}
	if st.life.Ended() {
		return nil, store.ErrClosed
	}

	sc := &scanner{st: st, scan: s, filters: filters, resumeKey: bytes.Clone(s.Start)}
	sc.ctx, sc.cancel = context.WithCancel(ctx)
	// With this context Close also ends the pauses between attempts.
	sc.retry = st.router.NewRetrier(sc.ctx, s.Table)
	sc.rows.KeysOnly = s.KeysOnly
	// Two kinds of scans need the filter: a limit, because the server counts the rows that
	// it sends, and keys alone, because the assembler keeps only the first cell of a row.
	if s.MostInColumns && len(s.Columns) > 0 && s.MaxRows == 0 && !s.KeysOnly {
		sc.rows.Columns = cellblock.NewColumnSet(s.Columns)
	}
	return sc, nil
}

// scanner is one scan over any number of regions. It opens one scanner after
// another at the region servers, each a serverScanner.
//
// Two rules make it exact. After any failure a new server scanner is opened at
// resumeKey, the first key that was not yet delivered in a whole row. And no
// request for further rows is ever sent twice: each carries its number
// (next_call_seq), so that a server which has advanced past rows that never
// arrived refuses the next request instead of continuing.
type scanner struct {
	st      *Store
	scan    store.Scan
	filters *scanFilters
	ctx     context.Context // the caller's, ended by Close
	cancel  context.CancelFunc

	mu           sync.Mutex // Close may come from another goroutine
	resumeKey    []byte     // where to open the next server scanner
	server       serverScanner
	rows         cellblock.Assembler
	retry        *regions.Retrier
	stats        store.ScanStats
	scannedKnown bool  // the servers report how many rows they read
	err          error // set once the scan has ended; io.EOF at its regular end
}

// serverScanner is a scanner at a region server.
type serverScanner struct {
	loc      *regions.Location
	conn     *calls.Conn
	id       uint64
	open     bool        // the server keeps the scanner under id
	seq      uint64      // number of the next request
	inFlight *calls.Call // the request whose reply was not yet waited for
}

// Next returns the rows of the next reply, or of several replies if the first
// ones complete no row.
func (s *scanner) Next() ([]store.Row, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.err != nil {
		return nil, s.err
	}
	if err := s.st.life.Begin(); err != nil {
		return nil, err
	}
	defer s.st.life.Done()

	rows, err := s.nextBlock()
	if err != nil {
		s.err = err
		s.releaseServer()
	}
	return rows, err
}

// Stats returns what the scan has cost so far.
func (s *scanner) Stats() store.ScanStats {
	s.mu.Lock()
	defer s.mu.Unlock()

	stats := s.stats
	// The servers do not report it: they have read at least the returned rows.
	if !s.scannedKnown {
		stats.RowsScanned = stats.Rows
	}
	return stats
}

// Close ends the scan. A scanner that is still open at a server is closed there in
// the background.
func (s *scanner) Close() error {
	s.cancel() // before the lock, which a waiting Next holds

	s.mu.Lock()
	defer s.mu.Unlock()

	s.err = store.ErrClosed
	s.releaseServer()
	return nil
}

// nextBlock reads replies until rows are complete. If the scan's end comes
// together with its last rows, the following call of Next reports it.
func (s *scanner) nextBlock() ([]store.Row, error) {
	s.rows.StartBlock()
	for {
		// A reply may be there already, but a cancelled scan delivers no more.
		if err := s.ctx.Err(); err != nil {
			return nil, err
		}

		rows, err := s.readReply()
		switch {
		case err == io.EOF:
			return nil, io.EOF
		case err != nil:
			if err = s.resumeAfter(err); err != nil {
				return nil, err
			}
		case len(rows) > 0:
			return rows, nil
		}
	}
}

// readReply waits for one reply and returns the rows that it completes, perhaps
// none.
func (s *scanner) readReply() ([]store.Row, error) {
	reply, err := s.awaitReply()
	if err != nil {
		return nil, err
	}
	return s.decodeReply(reply)
}

// awaitReply waits for the next reply of the current region, or for the first one
// of the next region. It returns io.EOF if there is no next region.
func (s *scanner) awaitReply() (*calls.Call, error) {
	// Usually decodeReply has requested the next reply already.
	if s.server.inFlight == nil {
		if s.server.open {
			s.send(s.nextRequest(s.server.loc))
		} else if err := s.openNextRegion(); err != nil {
			return nil, err
		}
	}

	call := s.server.inFlight
	err := s.server.conn.Wait(s.ctx, call)
	if err != nil && s.ctx.Err() != nil {
		// The call stays in flight: releaseServer waits for it, to close the
		// scanner that it may open.
		return nil, err
	}
	s.server.inFlight = nil
	s.st.router.Invalidate(s.server.loc, s.server.conn, err)
	return call, err
}

// openNextRegion sends the first request to the region that holds resumeKey. If
// the filter admits no row there, resumeKey first moves on to the next range that
// the filter wants. It returns io.EOF if no more rows are wanted.
func (s *scanner) openNextRegion() error {
	// The last one has ended with its region.
	s.server = serverScanner{}

	key, ok := s.filters.firstWanted(s.resumeKey)
	if !ok || s.exhausted(key) {
		return io.EOF
	}
	s.resumeKey = bytes.Clone(key)
	loc, err := s.st.router.Locate(s.ctx, s.scan.Table, s.resumeKey)
	if err != nil {
		return err
	}
	request, err := s.openRequest(loc)
	if err != nil {
		return err
	}
	c, err := s.st.router.Connect(s.ctx, loc)
	if err != nil {
		return err
	}

	s.server = serverScanner{loc: loc, conn: c}
	s.send(request)
	return nil
}

// exhausted reports whether no row from key on is wanted any more.
func (s *scanner) exhausted(key []byte) bool {
	if s.scan.MaxRows > 0 && s.stats.Rows >= int64(s.scan.MaxRows) {
		return true
	}
	// The rows of hbase:meta are ordered by table, then start key, not bytewise.
	if s.scan.Table == regions.MetaTable {
		return false
	}
	return len(s.scan.Stop) != 0 && bytes.Compare(key, s.scan.Stop) >= 0
}

// send sends a request on the server scanner's connection. The call lives as long
// as the store, not the scan: a server scanner can be closed only after its last
// call has ended.
func (s *scanner) send(request *pb.ScanRequest) {
	call := calls.New(s.st.life.Context(), "Scan", request, &pb.ScanResponse{})
	s.server.inFlight = call
	s.server.seq++
	s.stats.RPCs++
	s.st.router.Send(s.server.conn, s.server.loc, call)
}

// decodeReply returns the rows that a reply completes. It requests the next reply
// before the caller begins to work on these rows.
func (s *scanner) decodeReply(call *calls.Call) ([]store.Row, error) {
	response := call.Response.(*pb.ScanResponse)
	// A server need not repeat the id in later replies.
	if response.ScannerId != nil {
		s.server.id, s.server.open = response.GetScannerId(), true
	}
	// A reply without rows is no progress, but shows that the server is at work.
	s.retry.ExtendDeadline()
	s.countReply(response, len(call.Cells))

	// At its end the server closes the scanner.
	regionEnds := endsRegion(response)
	if regionEnds {
		s.server.open = false
	}

	// Nothing is delivered, and resumeKey stays, until the reply has been checked.
	if len(response.Results) > 0 {
		return nil, fmt.Errorf("%w: the server sent %d results outside of the cell block", cellblock.ErrMalformed,
			len(response.Results))
	}
	if err := s.addReply(call); err != nil {
		return nil, err
	}
	rows := s.limitRows(s.rows.CompleteRows(regionEnds))
	if err := s.checkKeys(rows); err != nil {
		return nil, err
	}
	if !s.server.open && !regionEnds {
		return nil, fmt.Errorf("%w from %s: it promises more rows but names no scanner", errReply, s.server.loc.Addr)
	}

	s.advance(rows)
	if regionEnds {
		// A region without rows is progress, too: it is not read again.
		s.resumeKey = s.server.loc.Stop
		s.retry.MadeProgress()
	}
	// There are so many cells of other columns that a filter at the servers costs less.
	if c := s.rows.Columns; c != nil && !c.EndReply() {
		s.filterColumns()
	}

	switch {
	case regionEnds && len(s.resumeKey) == 0,
		s.exhausted(s.resumeKey): //fault:filter-done-taken-for-the-end TestScan_filterDone
		// A region without a stop key is the last of its table.
		s.err = io.EOF // for the following Next
		s.releaseServer()
		if len(rows) == 0 {
			return nil, io.EOF
		}
	case s.server.open:
		s.send(s.nextRequest(s.server.loc))
	}
	// Otherwise the region or its scanner has ended: the following Next opens another.
	return rows, nil
}

// addReply decodes the cells of a reply. Those of other columns do not count as read,
// because it is no business of the caller where they are dropped.
func (s *scanner) addReply(call *calls.Call) error {
	counts := call.Response.(*pb.ScanResponse).GetCellsPerResult()
	c := s.rows.Columns
	if c == nil {
		return s.rows.AddReply(call.Cells, counts)
	}
	before := c.DroppedBytes()
	err := s.rows.AddReply(call.Cells, counts)
	s.stats.Bytes -= c.DroppedBytes() - before
	return err
}

// filterColumns lets the servers drop the cells of other columns from now on. It drops the server
// scanner, which has no filter for them, and an incomplete row: the next scanner begins at
// resumeKey.
func (s *scanner) filterColumns() {
	s.rows.Columns = nil
	s.releaseServer()
	s.rows.Reset()
}

// checkKeys returns an error if a reply's rows are not of the undelivered part of the
// region: rows that came before, or rows of another region. It does not check
// hbase:meta, whose rows are not ordered bytewise.
func (s *scanner) checkKeys(rows []store.Row) error {
	if len(rows) == 0 || s.scan.Table == regions.MetaTable {
		return nil
	}

	loc, last := s.server.loc, rows[len(rows)-1].Key
	if bytes.Compare(rows[0].Key, s.resumeKey) < 0 || len(loc.Stop) != 0 && bytes.Compare(last, loc.Stop) >= 0 {
		return fmt.Errorf("%w from %s: got rows %x to %x, want them from %x on and below %x",
			errReply, loc.Addr, rows[0].Key, last, s.resumeKey, loc.Stop)
	}
	return nil
}

// endsRegion reports whether a reply is the last one of its region. An empty reply need not be: it may be a heartbeat.
//
// more_results says nothing about other regions. It is false once as many rows came as the request wants, which
// exhausted knows, and once the filter admits no more rows; and the filter has only the ranges of this region. A server
// whose time for the reply ends at the row that shows this says that there are more results in the region.
// Source: RSRpcServices.scan, RegionScannerImpl.nextInternal.
func endsRegion(response *pb.ScanResponse) bool {
	isFalse := func(more *bool) bool { return more != nil && !*more }
	return isFalse(response.MoreResultsInRegion) ||
		isFalse(response.MoreResults) //fault:heartbeat-taken-for-the-end TestScan_cutEveryReply
}

// limitRows cuts rows at Scan.MaxRows.
func (s *scanner) limitRows(rows []store.Row) []store.Row {
	if left := int64(s.scan.MaxRows) - s.stats.Rows; s.scan.MaxRows > 0 && int64(len(rows)) > left {
		return rows[:left]
	}
	return rows
}

// advance counts rows that go to the caller and moves resumeKey after them.
func (s *scanner) advance(rows []store.Row) {
	if len(rows) == 0 {
		return
	}

	for i := range rows {
		s.stats.Cells += int64(len(rows[i].Cells))
	}
	s.stats.Rows += int64(len(rows))

	// The key with a zero byte after it is the next one in byte order. It is a
	// copy, as the caller's rows are overwritten by later replies.
	lastKey := append(make([]byte, 0, 64), rows[len(rows)-1].Key...)
	s.resumeKey = append(lastKey, 0) //fault:boundary-row-read-twice TestScan_manyLostReplies
	s.retry.MadeProgress()
}

// countReply adds the bytes of a reply's cells and the server's own counters, which
// begin at 0 with each call.
func (s *scanner) countReply(response *pb.ScanResponse, cellBytes int) {
	s.stats.Bytes += int64(cellBytes)
	for _, m := range response.GetScanMetrics().GetMetrics() {
		if m.GetName() == "ROWS_SCANNED" {
			s.stats.RowsScanned += m.GetValue()
			s.scannedKnown = true
		}
	}
}

// resumeAfter prepares to open another server scanner at resumeKey after a failure. It
// returns an error if the failure is final. An incomplete row is dropped: it is read
// again as a whole.
func (s *scanner) resumeAfter(err error) error {
	// Without a connection no server scanner was opened: nothing is resumed.
	if s.server.conn != nil {
		s.stats.Resumes++
	}
	s.releaseServer()
	s.rows.Reset()
	return s.retry.AfterFailure(err)
}

// releaseServer gives up the server scanner. If it is open, or may be because a
// call is in flight or has failed, it is closed in the background; otherwise the server would
// keep it for a minute, until its lease expires.
func (s *scanner) releaseServer() {
	server := s.server
	s.server = serverScanner{}
	// While the store closes nothing more is sent: the lease ends the scanner.
	if server.inFlight == nil && !server.open || s.st.life.Begin() != nil {
		return
	}

	go func() {
		defer s.st.life.Done()
		s.st.closeScanner(server)
	}()
}
