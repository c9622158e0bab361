package unchanged

import (
	"errors"
	"testing"
	"time"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// The master's report holds for a while; for a shorter one if there is none, or a clock is wrong.
func TestClusterHealth_note(t *testing.T) {
	at := time.UnixMilli(4_100_000_000_000) // not over yet for check
	for lag, want := range map[int64]time.Duration{
		0: healthFor, maxClockLag: healthFor, maxClockLag + 1: unhealthyFor,
	} {
		h := newClusterHealth()
		h.note(at, 1_800_000_000_000, &pb.GetClusterStatusResponse{ClusterStatus: &pb.ClusterStatus{
			LiveServers: []*pb.LiveServerInfo{{
				Server:     &pb.ServerName{HostName: proto.String("one"), Port: proto.Uint32(1)},
				ServerLoad: &pb.ServerLoad{ReportEndTime: proto.Uint64(uint64(1_800_000_000_000 - lag))},
			}},
		}}, nil)
		if got := h.until.Sub(at); got != want || h.lags["one:1"] != lag {
			t.Errorf("%d ms behind: holds for %v, %d ms behind, want %v", lag, got, h.lags["one:1"], want)
		}
		if err := h.check(t.Context(), nil, "one:1"); (err == nil) != (want == healthFor) {
			t.Errorf("%d ms behind: got %v", lag, err)
		}
	}
	h := newClusterHealth()
	h.note(at, 0, nil, errMetaSilent)
	if got := h.until.Sub(at); got != unhealthyFor || !errors.Is(h.err, errMetaSilent) {
		t.Errorf("no report: holds for %v, error %v, want %v", got, h.err, unhealthyFor)
	}
}
