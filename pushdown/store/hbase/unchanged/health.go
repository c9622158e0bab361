package unchanged

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"downpour/pushdown/store/hbase/calls"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// healthFor is how long the master's report is valid.
	healthFor = 30 * time.Second
	// unhealthyFor is how long the master is not called again after it did not answer, or reported
	// a wrong clock.
	unhealthyFor = 5 * time.Second
	// fieldSinkOps is ReplicationLoadSink.totalOpsProcessed, which gohbase's schema lacks.
	fieldSinkOps = 4
)

// clusterHealth keeps the master's last report on the region servers, on which proofs by timestamps
// rely.
type clusterHealth struct {
	turn       chan struct{}    // a lock that a waiting caller can give up: it holds a value while somebody has it
	until      time.Time        // when the master is to be called again
	err        error            // why it has not answered
	lags       map[string]int64 // by address; how far the clock seems to be behind, ms
	replicated string           // a server that has applied edits of another cluster; empty for none
}

func newClusterHealth() clusterHealth { return clusterHealth{turn: make(chan struct{}, 1)} }

// check returns an error unless the timestamps of a server's changes can be relied on.
func (h *clusterHealth) check(ctx context.Context, p *Prover, addr string) error {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return fmt.Errorf("%w: another call still reads the servers' clocks from the master: %w", errClocks, ctx.Err())
	}

	if time.Now().After(h.until) {
		// Not with a caller's context: its end would count as the master's failure for all.
		inner, cancel := context.WithTimeout(p.life.Context(), p.cfg.Timeout)
		defer cancel()
		response := &pb.GetClusterStatusResponse{}
		err := p.router.CallMaster(inner, "", "GetClusterStatus", &pb.GetClusterStatusRequest{}, response)
		h.note(time.Now(), p.clock(), response, err)
	}

	lag, known := h.lags[addr]
	switch {
	case h.err != nil:
		return fmt.Errorf("%w: cannot ask the master for the servers' clocks: %w", errClocks, h.err)
	case h.replicated != "":
		return fmt.Errorf("%w: server %s has applied edits of another cluster", errReplicated, h.replicated)
	case !known:
		return fmt.Errorf("%w: the master knows no live server %s", errClocks, addr)
	case lag > maxClockLag:
		return fmt.Errorf("%w: server %s: clock or last report: got %d s behind, want at most %d s", errClocks, addr,
			lag/1000, maxClockLag/1000)
	}
	return nil
}

// note notes the master's report that came at a time, which is now by Prover.clock, or why there is none.
// A report's end is the server's clock when it sent it, some seconds ago at most, so a clock is not
// further behind than it seems.
//
// Source: HRegionServer.tryRegionServerReport and ReplicationLoad of HBase 2.5.
func (h *clusterHealth) note(at time.Time, now int64, response *pb.GetClusterStatusResponse, err error) {
	h.err, h.until, h.lags, h.replicated = err, at.Add(healthFor), map[string]int64{}, ""
	if err != nil {
		h.until = at.Add(unhealthyFor)
	}
	for _, s := range response.GetClusterStatus().GetLiveServers() {
		addr := net.JoinHostPort(s.GetServer().GetHostName(), strconv.FormatUint(uint64(s.GetServer().GetPort()), 10))
		load := s.GetServerLoad()
		lag := now - int64(load.GetReportEndTime())
		if h.lags[addr] = lag; lag > maxClockLag {
			h.until = at.Add(unhealthyFor)
		}
		if hasApplied(load.GetReplLoadSink()) {
			h.replicated = addr
		}
	}
}

// hasApplied reports whether a server has applied edits of another cluster since it was started.
// Servers that do not count them report the age of the last one, 0 if there is none.
func hasApplied(sink *pb.ReplicationLoadSink) bool {
	for value := range calls.UnknownFields(sink, fieldSinkOps, protowire.VarintType) {
		ops, _ := protowire.ConsumeVarint(value)
		return ops > 0
	}
	return sink.GetAgeOfLastAppliedOp() > 0
}
