// Package place makes the places where benchmarks keep their data sets: four tables on an HBase, or a directory for an
// embedded store; and runs the servers over each.
package place

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"downpour/bench/peer"
	"downpour/bench/progress"
	"downpour/bench/report"
	"downpour/encoding"
	"downpour/gateway/metadata/tables"
	"downpour/integration/e2e"
	"downpour/pushdown/store"
)

// Maker makes places, and runs the HBase that those on HBase share.
type Maker struct {
	Name string // with which the names of tables begin
	// HBase is used if it is set. Otherwise the first place on HBase starts one, and Close ends it.
	HBase *e2e.HBase
	// Open opens the store at an address such as hbase:127.0.0.1:2181.
	Open     func(address string) (store.Store, error)
	Report   *report.Report // takes the version of HBase
	Progress *progress.Progress

	Store store.Store // of the HBase, once it is used
	own   bool        // the HBase was started here
	made  int         // sets of tables made so far; no name is used twice
}

// Close ends the HBase, if it was started here.
func (m *Maker) Close() {
	if m.Store != nil {
		m.Store.Close()
	}
	if m.own {
		m.HBase.Close()
	}
	peer.CloseIdle()
}

// StartHBase starts HBase, unless it runs, with a single region server, because all servers share two cores.
func (m *Maker) StartHBase(ctx context.Context) (err error) {
	if m.Store != nil {
		return nil
	}

	version := e2e.Version("hbase")
	if m.HBase == nil {
		m.Progress.Sayf("starting HBase")
		if m.HBase, err = e2e.StartHBase(ctx, e2e.HBaseOptions{RegionServers: 1, RegionServerMiB: 3072}); err != nil {
			return err
		}
		m.own, version = true, version+", one region server of 3 GiB"
	}

	m.Report.AddPeer(report.Peer{Name: peer.HBase, Version: version})
	m.Store, err = m.Open("hbase:" + m.HBase.Quorum())
	return err
}

// OnHBase makes a place of empty tables: OpenTSDB's four, and those of rollups, if there are to be any.
func (m *Maker) OnHBase(ctx context.Context, rollups func(data string) []string) (*Place, error) {
	if err := m.StartHBase(ctx); err != nil {
		return nil, err
	}

	m.made++
	p := &Place{maker: m, Tables: e2e.TablesWithPrefix(fmt.Sprintf("%s%d", m.Name, m.made))}
	names := tables.Names{Data: p.Tables.Data, UID: p.Tables.UID, Meta: p.Tables.Meta, Tree: p.Tables.Tree}
	if rollups != nil {
		names.Rollups = rollups(p.Tables.Data)
		p.More = names.Rollups
	}
	return p, tables.Create(ctx, m.Store, tables.Specs(names, encoding.DefaultSchema(), "NONE"))
}

// Embedded makes a place for an embedded store.
func (m *Maker) Embedded() (*Place, error) {
	dir, err := TempDir("bench-")
	return &Place{maker: m, Dir: dir}, err
}

// TempDir makes a directory in the module's build directory, because the temporary directory of the system may be in
// memory.
func TempDir(prefix string) (string, error) {
	root, err := e2e.Root()
	if err != nil {
		return "", err
	}
	parent := filepath.Join(root, "build", "run")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	return os.MkdirTemp(parent, prefix)
}

// drop drops tables. An empty name is that of a table that was not made.
func (m *Maker) drop(names []string) {
	// The run's own context may have ended by an interrupt.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, name := range names {
		if name != "" && m.HBase != nil {
			_ = m.HBase.Admin.DropTable(ctx, name) // a table that stays only takes room
		}
	}
}
