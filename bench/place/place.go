package place

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"downpour/bench/peer"
	"downpour/integration/e2e"
	"downpour/pushdown/store"
)

// Place is the storage of one data set, and the servers over it.
type Place struct {
	Tables e2e.Tables // on HBase
	More   []string   // further tables, which are dropped with the place
	Dir    string     // of an embedded store; empty on HBase

	maker   *Maker
	servers []running
}

// running is a server over a place.
type running struct {
	side     string
	server   *peer.Server
	pushdown *e2e.Program // nil without one
}

// Side is a server over a place, as data.
type Side struct {
	Name   string            // by which it is found again
	System string            // peer.OpenTSDB or peer.Victoria; empty is Downpour
	Env    map[string]string // settings of a gateway
	TSD    map[string]string // keys of opentsdb.conf
	// Pushed has a pushdown server, with settings PushdownEnv, execute the queries.
	Pushed      bool
	PushdownEnv map[string]string
	// Gateway and Pushdown are programs; empty is built from this tree.
	Gateway, Pushdown string
}

// Server returns the server of a side, which it starts unless it runs. VictoriaMetrics has storage of its own.
func (p *Place) Server(ctx context.Context, s Side) (*peer.Server, error) {
	if i := p.find(s.Name); i >= 0 {
		return p.servers[i].server, nil
	}
	one, err := p.start(ctx, s)
	if err != nil {
		return nil, errors.Join(err, one.close())
	}
	p.servers = append(p.servers, one)
	return one.server, nil
}

// find returns the index of the server of a side that runs, -1 if there is none.
func (p *Place) find(side string) int {
	return slices.IndexFunc(p.servers, func(one running) bool { return one.side == side })
}

// start starts the servers of a side. What has been started is returned also with an error.
func (p *Place) start(ctx context.Context, s Side) (one running, err error) {
	one.side = s.Name
	o := peer.Options{Dir: p.Dir, Tables: p.Tables, TSD: s.TSD, Env: maps.Clone(s.Env)}
	if p.Dir == "" {
		o.Quorum = p.maker.HBase.Quorum()
	}

	switch s.System {
	case peer.OpenTSDB:
		one.server, err = peer.StartOpenTSDB(ctx, o)
		return one, err
	case peer.Victoria:
		one.server, err = peer.StartVictoria(ctx)
		return one, err
	}

	if s.Pushed {
		pushed := peer.Options{
			Quorum: o.Quorum, Tables: p.Tables, Beside: p.maker.HBase.RegionServerAddr(0),
			Program: s.Pushdown, Env: s.PushdownEnv,
		}
		if one.pushdown, err = peer.StartPushdown(ctx, pushed); err != nil {
			return one, err
		}
		if o.Env == nil {
			o.Env = map[string]string{}
		}
		o.Env["DOWNPOUR_PUSHDOWN"] = one.pushdown.Addr
	}

	if s.Gateway != "" {
		o.Program, o.Name = s.Gateway, s.Name
	}
	one.server, err = peer.StartDownpour(ctx, o)
	return one, err
}

// close ends the servers of a side.
func (one running) close() error {
	err := one.server.Close()
	if one.pushdown != nil {
		err = errors.Join(err, one.pushdown.Close())
	}
	return err
}

// Processes returns the processes of a side that run.
func (p *Place) Processes(side string) (all []*e2e.Process) {
	if i := p.find(side); i >= 0 {
		all = append(all, p.servers[i].server.Process)
		if pushdown := p.servers[i].pushdown; pushdown != nil {
			all = append(all, pushdown.Process)
		}
	}
	return all
}

// Stop ends the servers of some sides, of all without one, and leaves the storage.
func (p *Place) Stop(sides ...string) (err error) {
	var left []running
	for _, one := range p.servers {
		if len(sides) > 0 && !slices.Contains(sides, one.side) {
			left = append(left, one)
			continue
		}
		err = errors.Join(err, one.close())
	}
	p.servers = left
	return err
}

// OnHBase reports whether the place is on HBase.
func (p *Place) OnHBase() bool { return p.Dir == "" }

// Address is that of the embedded store that a gateway opens when it starts there.
func (p *Place) Address() string { return "pebble:" + filepath.Join(p.Dir, "data") }

// Compact compacts the data table, so that each region has one file. An embedded store stays as it is.
func (p *Place) Compact(ctx context.Context) error {
	if !p.OnHBase() {
		return nil
	}
	return p.maker.HBase.Admin.Compact(ctx, p.Tables.Data)
}

// Drop ends the servers and removes the storage.
func (p *Place) Drop() {
	if p == nil {
		return
	}
	_ = p.Stop() // the data is removed however a server has ended
	if p.Dir != "" {
		os.RemoveAll(p.Dir)
	}
	p.maker.drop(append(p.Tables.All(), p.More...))
	p.Tables, p.More = e2e.Tables{}, nil
}

// HBase is that of the tables.
func (p *Place) HBase() *e2e.HBase { return p.maker.HBase }

// Store is that of the tables, opened by this process; nil of an embedded store, which belongs to one process.
func (p *Place) Store() store.Store { return p.maker.Store }

// Of is a place whose servers run already, for tests.
func Of(servers map[string]*peer.Server) *Place {
	p := &Place{maker: &Maker{}}
	for side, server := range servers {
		p.servers = append(p.servers, running{side: side, server: server})
	}
	return p
}
