package speed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/gateway/metadata/tables"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/integration/e2e"
	"downpour/pushdown/store"
)

// Forms of rows in HBase.
const (
	compacted = "compacted"
	cells     = "cells"
	rolled    = "rolled" // tables of rollups and histograms
	living    = "living" // tables that are written to
	viewed    = "viewed" // the same, with a dashboard over them
	calm      = "calm"   // tables whose rows are compacted
)

// stage holds what runs at the moment: one HBase with one data set, the servers over
// that data set, and a pair of servers with storage of their own.
type stage struct {
	cfg   *Config
	hbase *e2e.HBase
	store store.Store
	set   tableSet
	// tablesMade numbers the sets of tables, because no name is used twice.
	tablesMade int
	pair       pair
	pods       podPair // while their group is measured
	// hbaseBytes is what a point in compacted rows takes on disk; 0 is unknown.
	hbaseBytes float64
	// profilers repeats what was measured of the group that runs, by the names of figures.
	profilers map[string]profiler
}

// tableSet is a data set in HBase and the servers over it.
type tableSet struct {
	form, scale string
	data        workload.Devops
	tables      e2e.Tables
	rollup      string   // table of rollups by the hour, if there is one
	rollups     []string // that and the other tables of differential.RollupConfig
	metric      encoding.UID
	ours, tsd   *peer.Server
	caches      *peer.Server // ours without ScanEnv; nil if ScanEnv is empty or nobody asked
	// pushed is ours with the pushdown server, which is a process of its own; nil if nobody
	// asked.
	pushed   *peer.Server
	pushdown *e2e.Program
	others   []*peer.Server // see another
}

// pair is Downpour and VictoriaMetrics, each with one data set in storage of its
// own.
type pair struct {
	scale          string
	ours, victoria *peer.Server
}

// close ends all that runs.
func (s *stage) close() {
	s.dropPair()
	s.dropPods()
	s.dropSet()
	if s.store != nil {
		s.store.Close()
	}
	if s.hbase != nil && s.hbase != s.cfg.HBase {
		s.hbase.Close()
	}
	peer.CloseIdle()
}

// startHBase starts HBase with a single region server, because all servers share two
// cores.
func (s *stage) startHBase(ctx context.Context) error {
	if s.store != nil { // it runs already
		return nil
	}

	version := e2e.Version("hbase")
	if s.hbase = s.cfg.HBase; s.hbase == nil {
		s.cfg.Progress.Sayf("starting HBase")
		h, err := e2e.StartHBase(ctx, e2e.HBaseOptions{RegionServers: 1, RegionServerMiB: 3072})
		if err != nil {
			return err
		}
		s.hbase, version = h, version+", one region server of 3 GiB"
	}

	s.cfg.Report.AddPeer(report.Peer{Name: peer.HBase, Version: version})

	var err error
	s.store, err = s.cfg.Open("hbase:" + s.hbase.Quorum())
	return err
}

// newTables makes the four tables of OpenTSDB, empty.
func (s *stage) newTables(ctx context.Context) (e2e.Tables, error) {
	if err := s.startHBase(ctx); err != nil {
		return e2e.Tables{}, err
	}

	s.tablesMade++
	t := e2e.TablesWithPrefix(fmt.Sprintf("speed%d", s.tablesMade))
	return t, createTables(ctx, s.store, t)
}

// createTables makes the four tables of OpenTSDB, empty.
func createTables(ctx context.Context, st store.Store, t e2e.Tables) error {
	n := tables.Names{Data: t.Data, UID: t.UID, Meta: t.Meta, Tree: t.Tree}
	return tables.Create(ctx, st, tables.Specs(n, encoding.DefaultSchema(), "NONE"))
}

// load writes a data set into tables of a cluster, in rows of a form, and has each region's files compacted into
// one. It returns the UID of the data's first metric.
func load(ctx context.Context, st store.Store, h *e2e.HBase, t e2e.Tables, d workload.Devops, form write.Form) (encoding.UID, error) {
	schema := encoding.DefaultSchema()
	target := bench.Target{Store: st, Schema: schema, Table: t.Data, Form: form,
		Names: uid.Staged{Dictionary: uid.New(uid.Config{Store: st, Table: t.UID, Schema: schema})}}
	metric, err := target.Load(ctx, d, nil)
	if err != nil {
		return nil, err
	}
	return metric, h.Admin.Compact(ctx, t.Data)
}

// dropTables drops tables. An empty name is that of a table that was not made.
func (s *stage) dropTables(names []string) {
	if s.hbase == nil {
		return
	}

	// The run's own context may have ended by an interrupt.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, name := range names {
		if name != "" {
			_ = s.hbase.Admin.DropTable(ctx, name) // a table that stays only takes room
		}
	}
}

// useSet returns the data set of a group in HBase, with an OpenTSDB and a gateway over
// it. It makes all that unless an earlier group of the same form and scale has.
func (s *stage) useSet(ctx context.Context, g group) (*tableSet, error) {
	// The OpenTSDB is started last, and do has dropped the set of another form or scale: one
	// that runs has the data set of this group.
	if s.set.tsd != nil {
		return &s.set, nil
	}

	s.set = tableSet{form: g.form, scale: g.scale, data: s.cfg.dataAt(g.scale)}
	var err error
	if s.set.tables, err = s.newTables(ctx); err != nil {
		return nil, err
	}
	if err := s.fill(ctx); err != nil {
		return nil, err
	}

	o := peer.Options{Quorum: s.hbase.Quorum(), Tables: s.set.tables, Env: s.cfg.ScanEnv}
	if s.set.ours, err = s.started(peer.StartDownpour(ctx, o)); err != nil {
		return nil, err
	}
	if s.set.tsd, err = s.started(peer.StartOpenTSDB(ctx, o)); err != nil {
		return nil, err
	}

	return &s.set, nil
}

// caching returns a gateway with the settings that users have, the result cache
// included.
func (s *stage) caching(ctx context.Context) (*peer.Server, error) {
	// Without ScanEnv the gateway of the set has those settings.
	if len(s.cfg.ScanEnv) == 0 {
		return s.set.ours, nil
	}
	var err error
	if s.set.caches == nil {
		s.set.caches, err = peer.StartDownpour(ctx, peer.Options{Quorum: s.hbase.Quorum(), Tables: s.set.tables})
	}
	return s.set.caches, err
}

// started adds a server that has started to the report, with its version.
func (s *stage) started(server *peer.Server, err error) (*peer.Server, error) {
	if err == nil {
		s.cfg.Report.AddPeer(server.Peer)
	}
	return server, err
}

// fill writes the data set as users have it: a cell for each point, or the points of a
// row compacted into one cell. It is flushed, and compacted into one file a region.
func (s *stage) fill(ctx context.Context) error {
	set := &s.set
	s.cfg.Progress.Sayf("loading %s, %s", set.form, set.data)

	form := write.MultiPoint
	if set.form == cells {
		form = write.Single
	}
	var err error
	if set.metric, err = load(ctx, s.store, s.hbase, set.tables, set.data, form); err != nil {
		return err
	}

	// The row bytes, of scale 1x alone, compares with this size.
	if set.form == compacted && set.scale == "1x" {
		size, err := compactedBytes(filepath.Join(s.hbase.Dir(), "root", "data", "default", set.tables.Data))
		if err != nil {
			return err
		}
		s.hbaseBytes = float64(size) / float64(set.data.Points())
	}

	return nil
}

// compactedBytes returns the size of the files that a major compaction has written
// under a table's directory. They are the newest of each region and family: the files
// that the compaction has read stay there for some minutes.
func compactedBytes(table string) (sum int64, err error) {
	families, err := filepath.Glob(filepath.Join(table, "*", "t"))
	if err != nil {
		return 0, err
	}
	for _, dir := range families {
		size, err := newestBytes(dir)
		if err != nil {
			return 0, err
		}
		sum += size
	}

	if sum == 0 {
		return 0, fmt.Errorf("%s: no compacted file of family t", table)
	}
	return sum, nil
}

// newestBytes returns the size of the newest store file of a family, 0 if it has none.
func newestBytes(dir string) (size int64, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}

	var newest time.Time
	for _, f := range files {
		info, err := f.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed after the directory was read
		}
		if err != nil {
			return 0, err
		}
		// Hidden files are checksums.
		if info.Mode().IsRegular() && !strings.HasPrefix(f.Name(), ".") && info.ModTime().After(newest) {
			newest, size = info.ModTime(), info.Size()
		}
	}

	return size, nil
}

// treeBytes returns the size of all files under a directory.
func treeBytes(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed after its directory was read
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}

		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	})
	return sum, err
}

// dropSet ends the servers over the data set in HBase and drops its tables.
func (s *stage) dropSet() {
	s.set.ours.Close()
	s.set.tsd.Close()
	s.set.caches.Close()
	s.set.pushed.Close()
	for _, server := range s.set.others {
		server.Close()
	}
	if s.set.pushdown != nil {
		s.set.pushdown.Close()
	}
	s.dropTables(append(s.set.tables.All(), s.set.rollups...))
	s.set = tableSet{}
}

// dropPair ends the servers with storage of their own.
func (s *stage) dropPair() {
	s.pair.ours.Close()
	s.pair.victoria.Close()
	s.pair = pair{}
}

// measure runs steps in turn and adds their figures to the report, in the place of
// those with the same name. It returns them by name.
func (s *stage) measure(ctx context.Context, ours *peer.Server, steps []bench.Step, warm, rounds int) (map[string]report.Figure, error) {
	s.keep(ours, steps)
	return s.interleave(ctx, steps, warm, rounds)
}

// interleave is measure without a profile of what misses its aim.
func (s *stage) interleave(ctx context.Context, steps []bench.Step, warm, rounds int) (map[string]report.Figure, error) {
	figures, err := bench.Interleave(ctx, steps, warm, rounds, nil)
	if err != nil {
		return nil, err
	}

	byName := map[string]report.Figure{}
	for _, f := range figures {
		byName[f.Name] = f
		s.cfg.Report.Figures = slices.DeleteFunc(s.cfg.Report.Figures, func(old report.Figure) bool { return old.Name == f.Name })
	}

	s.cfg.Report.Figures = append(s.cfg.Report.Figures, figures...)
	return byName, nil
}
