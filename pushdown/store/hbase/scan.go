package hbase

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"downpour/pushdown/store"

	"github.com/tsuna/gohbase/pb"
)

// Scan prepares a scan; nothing is sent before the first Next. The rows come
// region by region. While the caller works on one block, the server is already
// asked for the next.
func (st *Store) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	filters, err := newScanFilters(&s)
	if err != nil {
		return nil, err
	}
	if err := st.life.Err(); err != nil {
		return nil, store.ErrClosed
	}
	sc := &scanner{st: st, scan: s, filters: filters, at: bytes.Clone(s.Start), retry: st.newRetrier(ctx, s.Table)}
	sc.ctx, sc.cancel = context.WithCancel(ctx)
	sc.retry.ctx = sc.ctx
	sc.rows.keysOnly = s.KeysOnly
	return sc, nil
}

// scanner is one scan over any number of regions. Its place is what makes it
// exact: at is the first key not yet delivered in a whole row, and after any
// fault a new server scanner is opened there. No request for further rows is
// ever sent twice, and each carries its number (next_call_seq), so that a
// server which has advanced past rows we never saw refuses instead of going on.
type scanner struct {
	st      *Store
	scan    store.Scan
	filters *scanFilters
	ctx     context.Context
	cancel  context.CancelFunc

	mu     sync.Mutex // Close may come from another goroutine
	at     []byte     // where to open next
	server serverScanner
	rows   assembler
	retry  *retrier
	stats  store.ScanStats
	told   bool  // the server tells how many rows it looks at
	err    error // ends the scan; io.EOF at its end
}

// serverScanner is an open scanner at a region server.
type serverScanner struct {
	loc    *location
	conn   *conn
	id     uint64
	open   bool   // id is valid
	seq    uint64 // number of the next call
	flight *rpc   // a call made and not yet waited for
}

// Next returns the rows of one reply, or of more while none is complete.
func (s *scanner) Next() ([]store.Row, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	if err := s.st.enter(); err != nil {
		return nil, err
	}
	defer s.st.wg.Done()
	rows, err := s.next()
	if err != nil {
		s.err = err
		s.release()
	}
	return rows, err
}

// Stats tells the scan's cost so far.
func (s *scanner) Stats() store.ScanStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	if !s.told {
		stats.RowsScanned = stats.Rows
	}
	return stats
}

// Close ends the scan; a scanner that is still open at a server is closed
// there in the background.
func (s *scanner) Close() error {
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = store.ErrClosed
	}
	s.release()
	return nil
}

// next loops over replies until rows are complete. The scan's end may come
// together with its last rows; it is then reported by the following call.
func (s *scanner) next() ([]store.Row, error) {
	s.rows.next()
	for {
		if err := s.ctx.Err(); err != nil {
			return nil, err // even if a reply is faster
		}
		rows, err := s.step()
		switch {
		case err == io.EOF:
			return nil, io.EOF
		case err != nil:
			if err = s.recover(err); err != nil {
				return nil, err
			}
		case len(rows) > 0:
			return rows, nil
		}
	}
}

// step waits for one reply and reads it.
func (s *scanner) step() ([]store.Row, error) {
	reply, err := s.reply()
	if err != nil {
		return nil, err
	}
	return s.rowsOf(reply)
}

// reply gives the next reply of the current region, or the first of the next.
func (s *scanner) reply() (*rpc, error) {
	if s.server.flight == nil {
		var err error
		if s.server.open {
			s.send(s.nextRequest(s.server.loc))
		} else if err = s.open(); err != nil {
			return nil, err
		}
	}
	call := s.server.flight
	err := s.st.servers.wait(s.ctx, s.server.conn, call)
	if err != nil && s.ctx.Err() != nil {
		return nil, err // the call stays in flight, for release
	}
	s.server.flight = nil
	s.st.learn(s.server.loc, s.server.conn, err)
	if err != nil {
		switch judge(err) {
		case again, busy, unknown:
		default:
			s.server.open = false // there is nothing to close
		}
	}
	return call, err
}

// open sends the first call to the region that holds s.at, or to the region of
// the first wanted range behind it.
func (s *scanner) open() error {
	s.server = serverScanner{}
	at, ok := s.filters.skipTo(s.at)
	if !ok || s.exhausted(at) {
		return io.EOF
	}
	if !bytes.Equal(at, s.at) {
		s.at = bytes.Clone(at)
	}
	loc, err := s.st.locate(s.ctx, s.scan.Table, s.at)
	if err != nil {
		return err
	}
	request, err := s.openRequest(loc)
	if err != nil {
		return err
	}
	c, err := s.st.servers.get(s.ctx, loc.addr)
	if err != nil {
		s.st.learn(loc, c, err)
		return err
	}
	s.server = serverScanner{loc: loc, conn: c}
	s.send(request)
	return nil
}

// exhausted tells whether no row at or behind key can be wanted any more.
func (s *scanner) exhausted(key []byte) bool {
	if s.scan.MaxRows > 0 && s.stats.Rows >= int64(s.scan.MaxRows) {
		return true
	}
	if s.scan.Table == metaTable {
		return false // its rows have an order of their own, by table, then start key
	}
	return len(s.scan.Stop) != 0 && bytes.Compare(key, s.scan.Stop) >= 0
}

// send puts a call into flight. It lives as long as the store, not the scan:
// a server scanner can be closed only after its last call has ended.
func (s *scanner) send(request *pb.ScanRequest) {
	call := newRPC(s.st.life, "Scan", request, &pb.ScanResponse{})
	call.table, call.loc = s.scan.Table, s.server.loc
	s.server.flight = call
	s.server.seq++
	s.stats.RPCs++
	s.st.servers.start(s.server.conn, call)
}

// rowsOf reads a reply's rows and asks for the next reply before the caller
// begins to work on them.
func (s *scanner) rowsOf(call *rpc) ([]store.Row, error) {
	response := call.response.(*pb.ScanResponse)
	if response.ScannerId != nil {
		s.server.id, s.server.open = response.GetScannerId(), true
	}
	s.retry.alive()
	s.count(response, len(call.cells))
	ended, regionEnds := ends(response)
	if ended || regionEnds {
		s.server.open = false // the server has closed it
	}
	if len(response.Results) > 0 {
		return nil, fmt.Errorf("%w: the server sent %d results without one", errCellBlock, len(response.Results))
	}
	if err := s.rows.add(call.cells, response.GetCellsPerResult()); err != nil {
		return nil, err
	}
	rows := s.limit(s.rows.whole(ended || regionEnds))
	if err := s.checkPlace(rows); err != nil {
		return nil, err
	}
	if !s.server.open && !ended && !regionEnds {
		return nil, fmt.Errorf("%w from %s: more rows are promised, by a scanner without a number", errReply, s.server.loc.addr)
	}
	s.deliver(rows)
	if regionEnds {
		s.at = s.server.loc.stop
		s.retry.progress()
	}
	switch {
	case ended, regionEnds && len(s.at) == 0, s.exhausted(s.at):
		s.err = io.EOF // for the call after this one
		s.release()
		if len(rows) == 0 {
			return nil, io.EOF
		}
	case s.server.open:
		s.send(s.nextRequest(s.server.loc))
	}
	return rows, nil
}

// checkPlace demands that a reply's rows are of the part of the region that has
// not been delivered yet: neither those again nor another region's. The rows of
// hbase:meta have an order of their own.
func (s *scanner) checkPlace(rows []store.Row) error {
	if len(rows) == 0 || s.scan.Table == metaTable {
		return nil
	}
	loc, last := s.server.loc, rows[len(rows)-1].Key
	if bytes.Compare(rows[0].Key, s.at) < 0 || len(loc.stop) != 0 && bytes.Compare(last, loc.stop) >= 0 {
		return fmt.Errorf("%w from %s: got rows %x to %x, want them from %x on and below %x",
			errReply, loc.addr, rows[0].Key, last, s.at, loc.stop)
	}
	return nil
}

// ends tells whether a reply ends the scan, or its region only. An empty reply
// ends neither: it may be a heartbeat. At a region's end the flag of the scan
// says nothing: it also falls when the filter admits no more rows, and the
// filter holds only what concerns this region.
func ends(response *pb.ScanResponse) (scan, region bool) {
	region = response.MoreResultsInRegion != nil && !response.GetMoreResultsInRegion()
	scan = response.MoreResults != nil && !response.GetMoreResults() && !region
	return scan, region
}

// limit cuts rows at MaxRows.
func (s *scanner) limit(rows []store.Row) []store.Row {
	if left := int64(s.scan.MaxRows) - s.stats.Rows; s.scan.MaxRows > 0 && int64(len(rows)) > left {
		return rows[:left]
	}
	return rows
}

// deliver counts rows that go to the caller and moves the place behind them.
func (s *scanner) deliver(rows []store.Row) {
	if len(rows) == 0 {
		return
	}
	for i := range rows {
		s.stats.Cells += int64(len(rows[i].Cells))
	}
	s.stats.Rows += int64(len(rows))
	s.at = append(append(make([]byte, 0, 64), rows[len(rows)-1].Key...), 0)
	s.retry.progress()
}

// count adds a reply's bytes and the server's own counters, which are those
// of one call.
func (s *scanner) count(response *pb.ScanResponse, bytes int) {
	s.stats.Bytes += int64(bytes)
	for _, m := range response.GetScanMetrics().GetMetrics() {
		if m.GetName() == "ROWS_SCANNED" {
			s.stats.RowsScanned += m.GetValue()
			s.told = true
		}
	}
}

// recover prepares for opening again at s.at, unless the fault is final. The
// row held back is dropped: it is read again, whole.
func (s *scanner) recover(err error) error {
	if s.server.conn != nil {
		s.stats.Resumes++
	}
	s.release()
	s.rows.reset()
	return s.retry.after(err)
}

// release gives up the server's scanner. If it is open, or may be because a
// call is in flight, it is closed in the background, or its lease would keep
// it for a minute.
func (s *scanner) release() {
	server := s.server
	s.server = serverScanner{}
	if server.flight == nil && !server.open || s.st.enter() != nil {
		return
	}
	go func() {
		defer s.st.wg.Done()
		s.st.closeScanner(server)
	}()
}
