package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"downpour/bench/peer"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/integration/e2e"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open"
)

// dataFlags binds the flags of a data set.
func dataFlags(flags *flag.FlagSet) *workload.Devops {
	d := workload.Default()
	flags.IntVar(&d.Hosts, "hosts", d.Hosts, "hosts")
	flags.IntVar(&d.MetricCount, "metrics", d.MetricCount,
		fmt.Sprintf("metrics of each host, gauges and counters, integers and floats: 1 to %d", len(workload.Metrics)))
	flags.IntVar(&d.Tags, "tags", d.Tags, "tags of each host, 1 to 8")
	flags.IntVar(&d.Hours, "hours", d.Hours, "hours")
	flags.IntVar(&d.Step, "step", d.Step, "seconds between points, a divisor of 3600")
	flags.Int64Var(&d.Start, "start", d.Start, "first second, a full hour")
	flags.Uint64Var(&d.Seed, "seed", d.Seed, "seed of the data")
	return &d
}

// quietLog is for stores in this process: what goes wrong comes as an error.
var quietLog = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))

// openStore opens the store at an address.
func openStore(address string) (store.Store, error) { return open.Open(address, quietLog) }

// local is a store for a workload in this process, and how it comes to rest.
type local struct {
	store   store.Store
	address string
	hbase   *e2e.HBase // that was started for it; nil without one
	settle  func(context.Context) error
	close   func()
}

const storeHelp = "pebble:DIR, hbase:HOST:PORT[/znode], or hbase to start one on this machine; " +
	"empty is a new embedded store"

// use opens the store that a flag names, or starts one.
func (s *session) use(ctx context.Context, address string, r *report.Report) (p *local, err error) {
	switch address {
	case "hbase":
		p, err = s.startHBase(ctx, r)
	case "":
		p, err = newEmbedded()
	default: // somebody else's, which stays when the workload ends
		p = &local{address: address, close: func() {}, settle: func(context.Context) error { return nil }}
	}
	if err != nil {
		return nil, err
	}

	st, err := openStore(p.address)
	if err != nil {
		p.close()
		return nil, err
	}
	// A store that can flush its memory comes to rest by that.
	if f, ok := st.(interface{ Flush(context.Context) error }); ok {
		p.settle = f.Flush
	}

	end := p.close
	p.store, p.close = st, func() { st.Close(); end() }
	return p, nil
}

// newEmbedded is an embedded store that ends with the workload.
func newEmbedded() (*local, error) {
	dir, err := os.MkdirTemp("", "downpour-bench-")
	if err != nil {
		return nil, err
	}
	return &local{
		address: "pebble:" + dir,
		close:   func() { os.RemoveAll(dir) },
		settle:  func(context.Context) error { return nil },
	}, nil
}

// startHBase is the store of an HBase on this machine, which ends with the
// workload.
func (s *session) startHBase(ctx context.Context, r *report.Report) (*local, error) {
	if err := s.setUp(ctx, "java_programs"); err != nil {
		return nil, err
	}
	h, err := e2e.StartHBase(ctx, e2e.HBaseOptions{RegionServers: 1, RegionServerMiB: 2048})
	if err != nil {
		return nil, err
	}

	r.AddPeer(report.Peer{Name: peer.HBase, Version: e2e.Version("hbase") + ", one region server of 2 GiB"})
	return &local{address: "hbase:" + h.Quorum(), hbase: h, settle: compactOnce(h), close: func() { h.Close() }}, nil
}

// compactOnce compacts each table of a workload the first time that it is asked to.
func compactOnce(h *e2e.HBase) func(context.Context) error {
	var settled []string
	return func(ctx context.Context) error {
		// The tables of workloads that settle begin with bench.
		tables, err := h.Admin.Tables(ctx)
		for _, t := range tables {
			if err == nil && strings.HasPrefix(t, "bench") && !slices.Contains(settled, t) {
				settled = append(settled, t)
				err = h.Admin.Compact(ctx, t)
			}
		}
		return err
	}
}

// setUp gets what the real servers need and the machine lacks.
func (s *session) setUp(ctx context.Context, steps ...string) error {
	for _, step := range steps {
		if err := e2e.SetUp(ctx, step); err != nil {
			return err
		}
	}
	return nil
}
