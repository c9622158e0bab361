package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"downpour/encoding"
	"downpour/integration/differential"
	"downpour/pushdown/compaction/background"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/process/network/networktest"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/rpc/server"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
)

// servers are how many there are of each kind: region servers with a pushdown server each, and gateways.
const servers = 2

// tables are those of OpenTSDB and our own, with their families.
var tables = map[string][]string{
	"tsdb":               {"t"},
	"tsdb-uid":           {"id", "name"},
	"tsdb-meta":          {"name"},
	"tsdb-tree":          {"t"},
	"downpour-state":     {"s"},
	"tsdb-preagg":        {"t"},
	"tsdb-rollup":        {"t"},
	"tsdb-rollup-preagg": {"t"},
}

// versioned are the tables whose deleted and older cells the fake keeps, as HBase does until a compaction.
var versioned = []string{"tsdb", "tsdb-rollup", "downpour-state"}

// cluster is an HBase with pushdown servers.
type cluster struct {
	w        *World
	hbase    *hbasefake.Cluster
	byNodes  bool // it is found by its bootstrap nodes, and not by ZooKeeper
	pushdown [servers]*process
	found    *finding // nil if the pushdown servers are listed
}

func onCluster(w *World) ground {
	r := w.rand("cluster")
	k := &cluster{
		w:       w,
		byNodes: w.rand("nodes").IntN(2) == 0,
		hbase: hbasefake.For(w.t, hbasefake.Options{
			Servers:          servers,
			Network:          &w.network,
			Handlers:         3 + r.IntN(8),
			MaxReplyCells:    []int{0, 3, 7, 50}[r.IntN(4)],
			HeartbeatEvery:   []int{0, 3, 5}[r.IntN(3)],
			FlagCompleteRows: r.IntN(2) == 0,
		}),
	}
	for name, families := range tables {
		k.hbase.CreateTable(name, families)
	}
	for _, name := range versioned {
		k.hbase.KeepVersions(name)
	}
	k.found = newFinding(k)
	return k
}

func (k *cluster) gateways() int { return servers }

func (k *cluster) settings(r *rand.Rand) map[string]string {
	pick := func(values ...string) string { return values[r.IntN(len(values))] }
	at := "hbase:" + k.hbase.Address()
	if k.byNodes {
		at = "hbase+rpc://" + strings.Join(k.hbase.Nodes(), ",")
	}
	settings := map[string]string{
		"DOWNPOUR_STORE":              at,
		"DOWNPOUR_PUT_CELLS":          pick("single", "multi"),
		"DOWNPOUR_RESULT_CACHE_PROOF": pick("exact", "timestamps"),
		"DOWNPOUR_PUSHDOWN":           pick("", pushdownAddress(0)+","+pushdownAddress(1)),
	}
	if k.found != nil {
		k.found.settings(r, settings)
	}
	return settings
}

func (k *cluster) start(cells map[string][]differential.Cell) error {
	for table, cells := range cells {
		for _, c := range cells {
			if table == "tsdb" {
				k.hbase.PutAt(table, string(c.Row), c.Family, string(c.Qualifier), string(c.Value), c.Timestamp)
			} else {
				k.hbase.Put(table, string(c.Row), c.Family, string(c.Qualifier), string(c.Value))
			}
		}
	}
	for i := range k.pushdown {
		k.pushdown[i] = k.newPushdown(i)
		k.pushdown[i].start()
	}
	return nil
}

func (k *cluster) open(process string, host *networktest.Host, proof hbase.Proof) (store, error) {
	return k.connect(process, host, proof)
}

func (k *cluster) connect(process string, host *networktest.Host, proof hbase.Proof) (*hbase.Store, error) {
	cfg := hbase.Config{Dial: host.DialContext, Proof: proof, Logger: k.w.log(process)}
	if k.byNodes {
		cfg.Nodes = k.hbase.Nodes()
	} else {
		cfg.Quorum = k.hbase.Address()
	}
	return hbase.Open(cfg)
}

func (k *cluster) live() {
	k.hbase.SetHook(k.w.faults.of)
	tsd, err := k.newTSD()
	if err != nil {
		k.w.t.Error(err)
		return
	}
	defer tsd.st.Close()
	var all sync.WaitGroup
	all.Go(tsd.write)
	all.Go(k.breakRegions)
	all.Go(k.breakPushdown)
	if k.found != nil {
		all.Go(k.found.live)
	}
	if w := k.w; w.tempo == minutes && w.rand("replaced").IntN(3) == 0 {
		all.Go(k.replaceTable)
	}
	all.Go(k.maintain)
	all.Go(k.w.operate)
	all.Wait()
}

func (k *cluster) heal() {
	k.hbase.SetHook(nil)
	for _, p := range k.pushdown {
		if k.found != nil {
			p.stop() // its row may be deleted or hidden: the next process has another one
		}
		p.start()
	}
}

func (k *cluster) killed() {}

func (k *cluster) close() {
	for _, p := range k.pushdown {
		p.stop()
	}
	if k.found != nil {
		k.found.close()
	}
	k.w.dying.Wait()
	k.hbase.Close()
}

// maintain flushes and compacts tables, as HBase does.
func (k *cluster) maintain() {
	r := k.w.rand("maintenance")
	for k.w.pause(r, 30*time.Second) {
		for _, table := range versioned {
			switch r.IntN(3) {
			case 0:
				k.w.broke("table flushed", "%s is flushed", table)
				k.hbase.FlushVersions(table)
			case 1:
				k.w.broke("table compacted", "%s is compacted", table)
				k.hbase.CompactVersions(table)
			}
		}
	}
}

// breakPushdown kills, stops and suspends pushdown servers, one or all at once, and starts them again.
func (k *cluster) breakPushdown() {
	r := k.w.rand("pushdown servers")
	for k.w.pause(r, 2*time.Minute) {
		if r.IntN(4) > 0 {
			k.pushdown[r.IntN(servers)].fail(r)
			continue
		}
		var all sync.WaitGroup
		for i, p := range k.pushdown {
			all.Go(func() { p.fail(k.w.rand(fmt.Sprint("all pushdown servers, ", i, " at ", time.Since(k.w.began)))) })
		}
		all.Wait()
	}
}

// breakRegions moves, splits and merges regions, disables tables, and lets servers stand still.
func (k *cluster) breakRegions() {
	w := k.w
	r := w.rand("regions")
	for w.pause(r, 20*time.Second) {
		table := []string{"tsdb", "tsdb", "tsdb", "tsdb-uid", "tsdb-meta"}[r.IntN(5)]
		key := []byte{0, 0, byte(1 + r.IntN(3)), byte(r.IntN(256))}
		i, d := r.IntN(servers), time.Duration(r.Int64N(int64(90*time.Second)))
		if r.IntN(8) == 0 {
			d += 3 * time.Minute // longer than the writer tries
		}
		switch r.IntN(11) {
		case 0:
			w.broke("region moved", "%s %x moves", table, key)
			k.hbase.MoveRegion(table, key)
		case 1:
			w.broke("region split", "%s %x is split", table, key)
			k.hbase.SplitRegion(table, key)
		case 2:
			w.broke("regions merged", "%s %x is merged", table, key)
			k.hbase.MergeRegions(table, key)
		case 3:
			w.broke("region server paused", "region server %d is paused for %v", i, d)
			k.hbase.PauseServer(i)
			k.outage(r, i, d)
			k.hbase.ResumeServer(i)
		case 4:
			w.broke("region server down", "region server %d is down for %v", i, d)
			k.hbase.StopServer(i)
			k.outage(r, i, d)
			if err := k.hbase.RestartServer(i); err != nil {
				w.t.Errorf("seed %d: %v", w.seed, err)
			}
		case 5:
			w.broke("ZooKeeper down", "ZooKeeper is down for %v", d)
			k.hbase.StopZooKeeper()
			w.rest(d)
			if err := k.hbase.RestartZooKeeper(); err != nil {
				w.t.Errorf("seed %d: %v", w.seed, err)
			}
		case 6:
			w.broke("table disabled", "%s is disabled for %v", table, d)
			k.hbase.Disable(table)
			w.rest(d)
			k.hbase.Enable(table)
		case 7:
			w.broke("hbase:meta moved", "region server %d serves hbase:meta", i)
			k.hbase.MoveMeta(i)
		case 8:
			w.broke("master down", "the master is down for %v", d)
			k.hbase.StopMaster()
			w.rest(d)
			if err := k.hbase.RestartMaster(); err != nil {
				w.t.Errorf("seed %d: %v", w.seed, err)
			}
		case 9:
			if behind := time.Duration(r.Int64N(int64(30 * time.Second))); k.clocksMayDiffer() {
				w.broke("clock set", "the clock of region server %d is %v behind", i, behind)
				k.hbase.SetBehind(i, behind.Milliseconds())
			}
		case 10:
			w.broke("region server hangs up", "region server %d closes each connection for %v", i, d)
			w.faults.hangUp(i, true)
			w.rest(d)
			w.faults.hangUp(i, false)
		}
	}
}

// clocksMayDiffer reports whether clocks of region servers may: HBase admits 30 s. An earlier value or a deletion can
// then hide a later value of a point, in OpenTSDB as well, so worlds with either keep their clocks.
func (k *cluster) clocksMayDiffer() bool { return !k.w.deletes && !k.w.recorded.lenient }

// outage waits while a region server is paused or down. In half of the cases its session ends, and
// the master opens its regions elsewhere.
func (k *cluster) outage(r *rand.Rand, server int, d time.Duration) {
	const session = 10 * time.Second
	if ends := r.IntN(2) == 0; ends && d > session {
		k.w.rest(session)
		k.w.broke("region server lost", "the regions of region server %d are opened elsewhere", server)
		k.hbase.FailOver(server)
		d -= session
	}
	k.w.rest(d)
}

func pushdownAddress(i int) string { return fmt.Sprintf("127.0.0.1:%d", 42_800+i) }

// newPushdown returns a pushdown server that does not run yet, on the machine of a region server.
func (k *cluster) newPushdown(i int) *process {
	w, schema, beside := k.w, encoding.DefaultSchema(), k.hbase.Nodes()[1+i]
	const kind = "pushdown server"
	name := fmt.Sprint(kind, " ", i)
	// Parts have few points here: in half of the worlds their answers are many batches, so that some come before
	// a fault.
	flush := w.rand("batches").IntN(2) * 200
	return &process{w: w, kind: kind, name: name, run: func(ctx context.Context, host *networktest.Host) error {
		says := self{pushdownAddress(i), beside, "tsdb"}
		if k.found != nil {
			says = k.found.self(i)
		}
		l, err := host.Listen("tcp", says.address)
		if err != nil {
			return err
		}
		defer l.Close()
		st, err := k.connect(name, host, hbase.ProofExact)
		if err != nil {
			return err
		}
		defer st.Close()
		pool := memory.New(1 << 30)
		var serving *server.Server
		compacting, err := background.On(st, "downpour-state", background.Config{
			Table:         "tsdb",
			Schema:        schema,
			Margin:        time.Minute,
			Rate:          100,
			FixDuplicates: w.recorded.lenient,
			Beside:        beside,
			Busy:          func() int { return serving.Parts() },
			Log:           w.log(name),
		})
		if err != nil {
			return err
		}
		cfg := server.Config{Program: "pushdown", Beside: says.beside, Table: says.table,
			Schema: schema, Memory: pool, FlushBytes: flush,
			ResultCache: resultcache.New(pool.Cache(1<<20), w.log(name)), Seek: access.NewPrefixCache(),
			Log: w.log(name)}
		if k.found != nil {
			k.found.protect(&cfg, says.address)
		}
		serving, err = server.NewServer(cfg, st)
		if err != nil {
			return err
		}
		var work sync.WaitGroup
		defer work.Wait()
		work.Go(func() { compacting.Run(ctx) })
		if k.found != nil {
			work.Go(func() { k.found.announce(ctx, name, says, st) })
		}
		return serving.Serve(ctx, l)
	}}
}
