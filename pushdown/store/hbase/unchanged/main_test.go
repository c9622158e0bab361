package unchanged

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/cellblock"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/hbase/regions"

	"github.com/tsuna/gohbase/pb"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bound is longer than any of these tests lasts; a test that hangs fails after it.
const bound = 5 * time.Minute

// cluster is a fake cluster, a prover on it and a context.
type cluster struct {
	*testing.T
	*hbasefake.Cluster
	st  *Prover
	ctx context.Context
}

// start runs a fake cluster and makes a prover on it; both end with the test.
func start(t *testing.T, opts hbasefake.Options, change ...func(*Config)) *cluster {
	t.Helper()
	cfg := Config{Timeout: bound}
	for _, f := range change {
		f(&cfg)
	}
	fake := hbasefake.For(t, opts)
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	t.Cleanup(cancel)
	return &cluster{T: t, Cluster: fake, st: open(t, fake, cfg), ctx: ctx}
}

// open makes a prover, which ends with the test.
func open(t *testing.T, fake *hbasefake.Cluster, cfg Config) *Prover {
	life := calls.NewLife()
	r := regions.New(&regions.Config{
		Calls: &calls.Config{
			EffectiveUser: "root",
			Logger:        slog.New(slog.DiscardHandler),
			Dial:          (&net.Dialer{}).DialContext,
			DialTimeout:   5 * time.Second,
			RPCTimeout:    60 * time.Second,
			WriteTimeout:  3 * time.Minute,
			ProbeAfter:    3 * time.Second,
		},
		Quorum:           fake.Address(),
		Root:             "/hbase",
		ZooKeeperTimeout: 10 * time.Second,
		LookUpHost:       net.DefaultResolver.LookupHost,
		RetryTimeout:     60 * time.Second,
	}, life)
	t.Cleanup(func() {
		life.End()
		r.CloseAll()
		life.Wait()
		r.CloseAll()
	})
	return New(cfg, r, life)
}

// fill creates table "t" with rows r0000… of 1, 2 or 3 cells.
func (c *cluster) fill(rows int, splits ...string) {
	var keys [][]byte
	for _, s := range splits {
		keys = append(keys, []byte(s))
	}
	c.CreateTable("t", []string{"t"}, keys...)
	for i := range rows {
		for q := range 1 + i%3 {
			c.Put("t", fmt.Sprintf("r%04d", i), "t", fmt.Sprintf("q%d", q), fmt.Sprintf("v%d", i*q))
		}
	}
}

// read scans a range inside one region, and returns a line for every cell.
func (c *cluster) read(r store.KeyRange) (lines []string, err error) {
	call, err := c.st.router.CallRow(c.ctx, "t", r.Start, regions.ResendLost,
		func(ctx context.Context, loc *regions.Location) *calls.Call {
			return calls.New(ctx, "Scan", &pb.ScanRequest{
				Region:       calls.RegionSpecifier(loc.Name),
				Scan:         &pb.Scan{StartRow: r.Start, StopRow: r.Stop},
				NumberOfRows: proto.Uint32(1000),
				NextCallSeq:  proto.Uint64(0),
				CloseScanner: proto.Bool(true),
			}, &pb.ScanResponse{})
		})
	if err != nil {
		return nil, err
	}
	rows, err := cellblock.Rows(call.Cells, call.Response.(*pb.ScanResponse).GetCellsPerResult())
	for _, row := range rows {
		for _, cell := range row.Cells {
			lines = append(lines, fmt.Sprintf("%s %s %s", row.Key, cell.Qualifier, cell.Value))
		}
	}
	return lines, err
}
