package builds

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"downpour/bench/peer"
	"downpour/bench/report"
	"downpour/encoding"
	"downpour/gateway/metadata/tables"
	"downpour/integration/e2e"
)

// open makes new storage for a build. It returns the side also with an error, so that drop
// removes what was made by then.
func (r *run) open(ctx context.Context, b Build, s scene) (*side, error) {
	one := &side{build: b, scene: s}
	var err error
	if one.dir, err = tempDir(); err != nil || !s.hbase {
		return one, err
	}

	if err := r.startHBase(ctx); err != nil {
		return one, err
	}
	r.tables++
	one.tables = e2e.TablesWithPrefix(fmt.Sprintf("builds%d", r.tables))
	one.quorum, one.beside = r.hbase.Quorum(), r.hbase.RegionServerAddr(0)
	names := tables.Names{Data: one.tables.Data, UID: one.tables.UID, Meta: one.tables.Meta, Tree: one.tables.Tree}
	return one, tables.Create(ctx, r.store, tables.Specs(names, encoding.DefaultSchema(), "NONE"))
}

// drop ends the servers and removes their storage.
func (r *run) drop(s *side) {
	if s == nil {
		return
	}
	_ = s.stop() // its data is removed however the server has ended
	os.RemoveAll(s.dir)
	if s.tables.Data == "" { // embedded, or no HBase could be started
		return
	}

	// The run's own context may have ended by an interrupt.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, name := range s.tables.All() {
		_ = r.hbase.Admin.DropTable(ctx, name) // a table that stays only takes room
	}
}

// tempDir makes a directory in the module's build directory, because the temporary
// directory of the system may be in memory.
func tempDir() (string, error) {
	root, err := e2e.Root()
	if err != nil {
		return "", err
	}
	parent := filepath.Join(root, "build", "run")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	return os.MkdirTemp(parent, "bench-")
}

// startHBase starts HBase with a single region server, because all servers share two
// cores.
func (r *run) startHBase(ctx context.Context) error {
	if r.store != nil { // it runs already
		return nil
	}
	version := e2e.Version("hbase")
	if r.hbase = r.cfg.HBase; r.hbase == nil {
		r.cfg.Progress.Sayf("starting HBase")
		h, err := e2e.StartHBase(ctx, e2e.HBaseOptions{RegionServers: 1, RegionServerMiB: 3072})
		if err != nil {
			return err
		}
		r.hbase, version = h, version+", one region server of 3 GiB"
	}

	r.cfg.Report.AddPeer(report.Peer{Name: peer.HBase, Version: version})

	var err error
	r.store, err = r.cfg.Open("hbase:" + r.hbase.Quorum())
	return err
}
