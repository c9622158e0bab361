package story_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/gorilla/websocket"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/extra"
	"downpour/gateway/gatewaytest"
	"downpour/gateway/metadata/tables"
	"downpour/integration/story"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/process/network"
	"downpour/pushdown/process/network/networktest"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/rpc/server"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/pebble"
)

// ground is what a gateway stores points in.
type ground interface {
	// settings are those that gateways need for it.
	settings() map[string]string
	// open opens it for a process on a machine.
	open(host *networktest.Host) (store.Store, error)
	// crashed is called when the only process that writes has ended as its machine did.
	crashed()
}

// stage is a place in a bubble of synctest: gateways over a ground, maybe each with a pushdown server, all on a network
// in memory.
type stage struct {
	ground   ground
	network  networktest.Memory
	pushdown bool // parts of queries run on pushdown servers
	faulty   bool // the store can be told to fail
	rules    []faultstore.Rule
	all      []*process
}

// process is a gateway, with its store and its pushdown server.
type process struct {
	on       *stage
	name     string
	address  string // of the gateway
	beside   string // of the pushdown server
	host     *networktest.Host
	st       store.Store
	fails    *faultstore.Store // st, if it can fail
	g        *gateway.Server
	end      context.CancelFunc // of the pushdown server
	served   sync.WaitGroup
	anyParts bool // the pushdown server has served some
}

func (s *stage) Server(name string) story.Server {
	i := slices.IndexFunc(s.all, func(p *process) bool { return p.name == name })
	if i < 0 {
		i = len(s.all)
		s.all = append(s.all, &process{
			on:      s,
			name:    name,
			address: fmt.Sprint("127.0.0.1:", 4242+i),
			beside:  fmt.Sprint("127.0.0.1:", 4280+i),
		})
	}
	return s.all[i]
}

func (p *process) Start(more map[string]string) (string, error) {
	values := p.on.ground.settings()
	values["DOWNPOUR_LISTEN"] = p.address
	values["DOWNPOUR_AUTO_METRICS"] = "true"
	values["DOWNPOUR_SELF_METRICS"] = "0"
	if p.on.pushdown {
		values["DOWNPOUR_PUSHDOWN"] = p.beside
	}
	maps.Copy(values, more)
	cfg, err := gatewaytest.Parse(values, extra.All()...)
	if err != nil {
		return "", err
	}
	p.host = networktest.NewHost(&p.on.network)
	cfg.Network = p.host
	if err := p.open(cfg); err != nil {
		return "", err
	}
	if p.on.pushdown {
		if err := p.serveParts(cfg); err != nil {
			return "", err
		}
	}
	p.g, err = gateway.Start(context.Background(), cfg, p.st, slog.New(slog.DiscardHandler))
	return p.address, err
}

// open opens the store, so that it can be told to fail if the story does so, and makes the tables that are not there
// yet.
func (p *process) open(cfg *gateway.Config) (err error) {
	if p.st, err = p.on.ground.open(p.host); err != nil {
		return err
	}
	for _, spec := range tables.Specs(cfg.TableNames(), cfg.Schema(), "NONE") {
		there, err := p.st.TableExists(context.Background(), spec.Name)
		if err == nil && !there {
			err = p.st.CreateTable(context.Background(), spec)
		}
		if err != nil {
			return err
		}
	}
	if p.on.faulty {
		p.fails = faultstore.New(p.st, p.on.rules...)
		p.st = p.fails
	}
	return nil
}

// serveParts starts the pushdown server, which reads the gateway's store: only one process can have an embedded one.
func (p *process) serveParts(cfg *gateway.Config) error {
	l, err := p.host.Listen("tcp", p.beside)
	if err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	var cache *resultcache.Cache
	if cfg.ResultCache != "off" {
		cache = resultcache.New(memory.New(1<<30).Cache(1<<20), log)
	}
	serving, err := server.NewServer(server.Config{
		Program:     "pushdown",
		Table:       cfg.TableData,
		Rollups:     cfg.RollupTables(),
		Schema:      cfg.Schema(),
		ResultCache: cache,
		Log:         log,
	}, p.st)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(context.Background())
	p.end = end
	p.served.Go(func() { serving.Serve(ctx, l) })
	return nil
}

func (p *process) Stop() (err error) {
	if p.g != nil {
		err = p.g.Close()
	}
	if p.end != nil {
		p.anyParts = p.anyParts || p.countsParts()
		p.end()
		p.served.Wait()
	}
	if p.fails != nil {
		if n := p.fails.OpenScans(); n > 0 {
			err = errors.Join(err, fmt.Errorf("%d scans are still open", n))
		}
	}
	if p.st != nil {
		p.st.Close()
	}
	p.g, p.end, p.st, p.fails = nil, nil, nil, nil
	return err
}

// servedParts are the counters of a pushdown server's parts.
var servedParts = regexp.MustCompile(`(?m)^downpour_pushdown_parts_total\{[^}]*\} [1-9]`)

// countsParts reports whether the pushdown server says that it has served parts.
func (p *process) countsParts() bool {
	client := http.Client{Transport: &http.Transport{DialContext: p.on.network.DialContext, DisableKeepAlives: true}}
	resp, err := client.Get("http://" + p.beside + "/metrics")
	if err != nil {
		return false // its machine has failed
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return err == nil && servedParts.Match(text)
}

func (p *process) Crash() error {
	p.host.Cut()
	p.on.ground.crashed()
	p.Stop() // what it still does reaches nobody
	return nil
}

func (s *stage) Network() network.Network { return &s.network }

func (s *stage) Socket(ctx context.Context, url string) (story.Socket, error) {
	d := websocket.Dialer{Subprotocols: []string{"downpour.v1"}, NetDialContext: s.network.DialContext}
	conn, _, err := d.DialContext(ctx, url, nil)
	return conn, err
}

func (s *stage) Pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (s *stage) Store() store.Cells { return s.all[0].st }

func (s *stage) Table(name string) string { return name }

func (s *stage) Fault(rules ...faultstore.Rule) {
	s.rules = rules
	for _, p := range s.all {
		if p.fails != nil {
			p.fails.Set(rules...)
		}
	}
}

// onDisk is an embedded store on files in memory.
type onDisk struct {
	mu    sync.Mutex
	files *vfs.MemFS
}

func (d *onDisk) settings() map[string]string {
	return map[string]string{"DOWNPOUR_STORE": "pebble:db"}
}

func (d *onDisk) open(*networktest.Host) (store.Store, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return pebble.Open("db", pebble.Options{Grouping: encoding.DefaultSchema().RowHours(), FS: d.files})
}

// crashed loses all that was not synced.
func (d *onDisk) crashed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files = d.files.CrashClone(vfs.CrashCloneCfg{})
}

// onHBase is a cluster of package hbasefake.
type onHBase struct{ *hbasefake.Cluster }

func (h onHBase) settings() map[string]string {
	return map[string]string{"DOWNPOUR_STORE": "hbase:" + h.Address()}
}

func (h onHBase) open(host *networktest.Host) (store.Store, error) {
	return hbase.Open(hbase.Config{Quorum: h.Address(), Dial: host.DialContext, Logger: slog.New(slog.DiscardHandler)})
}

func (h onHBase) crashed() {}

// newStage returns a stage without a gateway.
func newStage(t *testing.T, where string, pushdown, faulty bool) *stage {
	s := &stage{pushdown: pushdown, faulty: faulty}
	switch where {
	case story.Embedded:
		s.ground = &onDisk{files: vfs.NewCrashableMem()}
	case story.HBase:
		cluster := hbasefake.For(t, hbasefake.Options{Network: &s.network, Handlers: 4})
		s.ground = onHBase{cluster}
	default:
		t.Fatal(fmt.Sprint("got the store ", where))
	}
	return s
}
