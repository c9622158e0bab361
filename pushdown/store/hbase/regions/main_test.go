package regions

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/hbasefake"

	"github.com/tsuna/gohbase/pb"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bound is longer than any of these tests lasts; a test that hangs fails after it.
const bound = 5 * time.Minute

// cluster is a fake cluster, a router on it and a context.
type cluster struct {
	*testing.T
	*hbasefake.Cluster
	r   *Router
	cfg Config
	ctx context.Context
}

// start runs a fake cluster and makes a router on it; both end with the test.
func start(t *testing.T, opts hbasefake.Options, change ...func(*Config)) *cluster {
	t.Helper()
	fake := hbasefake.For(t, opts)
	return startOn(t, fake, opts, append([]func(*Config){func(cfg *Config) { cfg.Quorum = fake.Address() }}, change...))
}

// startByNodes runs a fake cluster without ZooKeeper and makes a router that asks its nodes.
func startByNodes(t *testing.T, opts hbasefake.Options, pick func(*hbasefake.Cluster) []string,
	change ...func(*Config)) *cluster {
	t.Helper()
	fake := hbasefake.For(t, opts)
	fake.StopZooKeeper()
	return startOn(t, fake, opts, append([]func(*Config){func(cfg *Config) { cfg.Nodes = pick(fake) }}, change...))
}

func startOn(t *testing.T, fake *hbasefake.Cluster, opts hbasefake.Options, change []func(*Config)) *cluster {
	t.Helper()
	cfg := Config{
		Calls: &calls.Config{
			EffectiveUser: "root",
			Logger:        slog.New(slog.DiscardHandler),
			Dial:          (&net.Dialer{}).DialContext,
			DialTimeout:   5 * time.Second,
			RPCTimeout:    60 * time.Second,
			WriteTimeout:  3 * time.Minute,
			ProbeAfter:    3 * time.Second,
		},
		Root:             "/hbase",
		ZooKeeperTimeout: 10 * time.Second,
		LookUpHost:       net.DefaultResolver.LookupHost,
		RetryTimeout:     60 * time.Second,
	}
	if opts.Network != nil {
		cfg.Calls.Dial = fake.Dial
	}
	for _, f := range change {
		f(&cfg)
	}
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	t.Cleanup(cancel)
	return &cluster{T: t, Cluster: fake, r: open(t, &cfg), cfg: cfg, ctx: ctx}
}

// open makes a router, which ends with the test.
func open(t *testing.T, cfg *Config) *Router {
	life := calls.NewLife()
	r := New(cfg, life)
	t.Cleanup(func() {
		life.End()
		r.CloseAll()
		life.Wait()
		r.CloseAll()
	})
	return r
}

// get asks the region of row r of table "t" for the row.
func (r *Router) get(ctx context.Context) error {
	row := []byte("r")
	_, err := r.CallRow(ctx, "t", row, ResendLost, func(ctx context.Context, loc *Location) *calls.Call {
		request := &pb.GetRequest{Region: calls.RegionSpecifier(loc.Name), Get: &pb.Get{Row: row}}
		return calls.New(ctx, "Get", request, &pb.GetResponse{})
	})
	return err
}
