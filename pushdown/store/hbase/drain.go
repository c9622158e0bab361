package hbase

import (
	"context"
	"io"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/calls"

	"github.com/tsuna/gohbase/pb"
)

// Drain runs a scan and discards its cell blocks without decoding them. Benchmarks
// use it as the least time that a query can take. A row that comes in several
// parts is counted once for each part. The first failure ends the scan: without
// decoded keys there is no place to continue from.
func (st *Store) Drain(ctx context.Context, s store.Scan) (store.ScanStats, error) {
	opened, err := st.Scan(ctx, s)
	if err != nil {
		return store.ScanStats{}, err
	}
	defer opened.Close()

	sc := opened.(*scanner)
	sc.rows.Columns = nil // it needs decoded cells; the server has the filter instead
	// Reading replies needs the lock that Next would hold.
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if err := st.life.Begin(); err != nil {
		return store.ScanStats{}, err
	}
	defer st.life.Done()

	for more := true; more; {
		call, err := sc.awaitReply()
		if err == io.EOF {
			break
		}
		if err != nil {
			return sc.stats, err
		}
		more = sc.discardReply(call)
	}
	return sc.stats, nil
}

// discardReply counts a reply. It returns false at the end of the scan.
func (s *scanner) discardReply(call *calls.Call) bool {
	response := call.Response.(*pb.ScanResponse)
	// A server need not repeat the id in later replies.
	if response.ScannerId != nil {
		s.server.id, s.server.open = response.GetScannerId(), true
	}
	s.countReply(response, len(call.Cells))
	for _, n := range response.GetCellsPerResult() {
		s.stats.Rows++
		s.stats.Cells += int64(n)
	}

	regionEnds := endsRegion(response)
	if regionEnds {
		s.server.open, s.resumeKey = false, s.server.loc.Stop
	}
	// A region without a stop key is the last of its table.
	return !(regionEnds && len(s.resumeKey) == 0) && !s.exhausted(s.resumeKey)
}
