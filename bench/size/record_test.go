//go:build integration

package size

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/engine/stage"
	"downpour/integration/e2e"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/rpc/client"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
)

var recordTo = flag.String("record", "", "write the recorded times into this file, in place of reading it")

// rounds is how many queries are recorded; keptParts how many of their parts are kept.
const rounds, keptParts = 15, 160

// TestRecord asks real pushdown processes on loopback, next to an HBase in this process, and records how long each part
// took. With -record it writes what the simulation draws from.
func TestRecord(t *testing.T) {
	all := recorded{By: map[string]recording{}}
	for _, n := range []int{1, 2, 4, 8} {
		l := layout{servers: n, regions: 4, series: 36, hours: 240, salts: n}
		r := record(t, l)
		all.By[fmt.Sprint(n)] = r
		t.Logf("%d processes: %.0f ms, %d parts kept, the first %d bytes in %.1f ms", n, ms(r.Wall), len(r.Parts),
			r.Parts[0][0], ms(time.Duration(r.Parts[0][1])))
	}
	all.Note = fmt.Sprintf("Times of parts by the bytes that they read: pushdown processes on loopback of one machine "+
		"with %d CPUs, which also ran the gateway's code and the HBase, a fake in memory, in a process of their own. "+
		"Per process 36 series of 240 hours, a point a minute in compacted rows, in 4 regions; the query %d times "+
		"after %d others, result caches off.", runtime.NumCPU(), rounds, warm)
	if *recordTo == "" {
		return
	}
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*recordTo, append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// record loads a layout and asks as many processes as it has servers.
func record(t *testing.T, l layout) recording {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	h := hbasefake.For(t, hbasefake.Options{Servers: l.servers})
	h.CreateTable(operatortest.Table, []string{"t"}, l.borders()...)
	h.CreateTable("tsdb-uid", []string{"id", "name"})
	fill(l, h)
	st, err := hbase.Open(hbase.Config{Quorum: h.Address(), Dial: h.Dial, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()

	regions, err := st.Regions(ctx, operatortest.Table, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	times := &partTimes{}
	var servers []dispatch.Server
	for _, beside := range besides(regions) {
		p, err := e2e.StartPushdown(ctx, e2e.ProgramOptions{Env: map[string]string{
			"DOWNPOUR_STORE": "hbase:" + h.Address(), "DOWNPOUR_BESIDE": beside, "DOWNPOUR_RESULT_CACHE": "off",
			"DOWNPOUR_SALT_WIDTH": "2", "DOWNPOUR_SALT_BUCKETS": fmt.Sprint(l.salts),
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Process.Kill()
		c, err := client.New(p.Addr, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		servers = append(servers, &timedServer{c, times})
	}
	if len(servers) != l.servers {
		t.Fatalf("regions on %d servers, want %d", len(servers), l.servers)
	}

	stages := stage.New(stage.Config{
		Exec: dispatch.New(dispatch.Config{Store: st, Servers: servers, HelloTimeout: time.Minute}),
		Log:  slog.New(slog.DiscardHandler),
	})
	var walls []time.Duration
	for i := range warm + rounds {
		if i == warm {
			times.all = nil
		}
		began := time.Now()
		a, err := stages.Groups(ctx, compiled(t, l, "partial"))
		if err != nil {
			t.Fatal(err)
		}
		if a.Stats.Remote != a.Stats.Parts {
			t.Fatalf("%d of %d parts at servers, want all", a.Stats.Remote, a.Stats.Parts)
		}
		if i >= warm {
			walls = append(walls, time.Since(began))
		}
	}
	slices.Sort(walls)
	parts := times.all
	rand.New(rand.NewPCG(1, 0)).Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return recording{l.regions, l.series, l.hours, walls[rounds/2], parts[:min(len(parts), keptParts)]}
}

// besides are the region servers.
func besides(regions []store.Region) (servers []string) {
	for _, r := range regions {
		servers = append(servers, r.Server)
	}
	slices.Sort(servers)
	return slices.Compact(servers)
}

// fill puts the rows of a layout, with values of two decimals.
func fill(l layout, h *hbasefake.Cluster) {
	rng, s := rand.New(rand.NewPCG(2, 0)), l.schema()
	for salt := range l.salts {
		for n := range l.inSalt() {
			for hour := range l.hours {
				var b encoding.CellBuilder
				for i := range 60 {
					at := int64(base+hour*3600+i*60) * 1000
					b.Add(operatortest.Encode(at, encoding.FloatValue(float64(rng.IntN(10_000))/100)))
				}
				row := s.AppendTags(s.AppendRangeKey(nil, salt, metric, uint32(base+hour*3600)), l.tags(salt, n))
				qualifier, value := b.Cell()
				h.Put(operatortest.Table, string(row), "t", string(qualifier), string(value))
			}
		}
	}
}

// partTimes are the bytes that parts have read, and the ns that they took.
type partTimes struct {
	mu  sync.Mutex
	all [][2]int64
}

// timedServer is a server whose parts are timed.
type timedServer struct {
	*client.Client
	times *partTimes
}

func (s *timedServer) Open(part *scanplan.Part, budget operator.Budget) (operator.Operator, error) {
	op, err := s.Client.Open(part, budget)
	return &timedPart{Operator: op, times: s.times, began: time.Now()}, err
}

type timedPart struct {
	operator.Operator
	times *partTimes
	began time.Time
}

func (p *timedPart) Next(ctx context.Context) (batch.Record, error) {
	r, err := p.Operator.Next(ctx)
	if err == io.EOF {
		p.times.mu.Lock()
		defer p.times.mu.Unlock()
		p.times.all = append(p.times.all, [2]int64{p.Stats().Bytes, int64(time.Since(p.began))})
	}
	return r, err
}
