package hbase

import (
	"context"
	"errors"
	"io"

	"downpour/pushdown/store"

	"github.com/tsuna/gohbase/pb"
)

// Drain runs a scan and throws its cell blocks away without reading them: the
// floor that benchmarks set queries against. Rows are counted as the pieces that
// replies bring. A fault ends it, for without reading keys there is no place to
// go on from.
func (st *Store) Drain(ctx context.Context, s store.Scan) (store.ScanStats, error) {
	opened, err := st.Scan(ctx, s)
	if err != nil {
		return store.ScanStats{}, err
	}
	defer opened.Close()
	sc := opened.(*scanner)
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if err := st.enter(); err != nil {
		return store.ScanStats{}, err
	}
	defer st.wg.Done()
	for more := true; more; {
		call, err := sc.reply()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return sc.stats, err
		}
		more = sc.skip(call)
	}
	return sc.stats, nil
}

// skip counts a reply and asks for the next; false at the end.
func (s *scanner) skip(call *rpc) bool {
	response := call.response.(*pb.ScanResponse)
	if response.ScannerId != nil {
		s.server.id, s.server.open = response.GetScannerId(), true
	}
	s.count(response, len(call.cells))
	for _, n := range response.GetCellsPerResult() {
		s.stats.Rows++
		s.stats.Cells += int64(n)
	}
	ended, regionEnds := ends(response)
	if ended || regionEnds {
		s.server.open = false
	}
	if regionEnds {
		s.at = s.server.loc.stop
	}
	if ended || regionEnds && len(s.at) == 0 || s.exhausted(s.at) {
		return false
	}
	if s.server.open {
		s.send(s.nextRequest(s.server.loc))
	}
	return true
}
