//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"downpour/encoding/seedtest"
	"downpour/integration/e2e"
	"downpour/pushdown/rollup"
	"downpour/pushdown/store"
	hbasestore "downpour/pushdown/store/hbase"
)

// Gateways with either proof give the answers of one without a cache, whatever is drawn to happen to
// the rows of a panel between two asks: row changes of every kind, flushes, compactions and moves of
// their region, while other rows of it are written to, and while they rest. Only after changes that
// timestamps do not claim to see may that proof keep an old answer.
//
// Each kind of change happens at least once after an answer that came from memory, or the test would
// prove nothing of it.
func TestProofs_drawn(t *testing.T) {
	t.Parallel()
	limit, draws := 15*time.Minute, 0
	if *soak {
		limit, draws = 85*time.Minute, 4000
	}
	seed := seedtest.Of(t)
	w := startDrawn(t, within(t, limit), seed)

	for i := 0; i < 16 || w.draws < draws; i++ {
		w.round(i%drawnRegions, round{living: i&1 == 0, flushed: i&2 == 0, first: firstGaps[i/4%4]})
	}
	w.report()
}

const (
	// drawnRegions are the regions of the table, one a metric.
	drawnRegions = 12
	// drawnGaps is how often something happens in a round.
	drawnGaps  = 3
	drawnHosts = 3
	drawnHours = 2
	// settleAsks is how often a reader may be asked until it answers from memory where it need
	// not: after the next compaction the files are listed, the change is looked for, and the
	// answer is stored, each by an ask.
	settleAsks = 6
	// provable is after how long a range that was written to can be proven by timestamps again.
	provable = 6 * time.Minute
)

// drawn is a table, and a gateway for each proof and one without a cache.
type drawn struct {
	*testing.T
	ctx       context.Context
	rng       *rand.Rand
	seed      uint64
	base      int64 // time of the cells that ranges begin with, ms
	table     string
	state     string // table of our jobs
	store     *hbasestore.Store
	stamps    *hbasestore.Store // proves by timestamps, for the job that makes rollups
	rollups   *rollup.Config
	env       map[string]string // of programs of ours
	tsd       *e2e.OpenTSDB
	truth     *e2e.Program
	readers   map[string]*e2e.Program // by proof
	regions   []string                // encoded names
	templates [drawnRegions][][]byte  // keys of a row of each series
	nextHour  [drawnRegions]int64
	old       [drawnRegions][]*panel // of earlier rounds
	fresh     []*panel               // of this round, by time

	busy    atomic.Int64 // the region that is written to all the time, -1 for none
	written atomic.Int64
	draws   int
	again   int                       // panels of earlier rounds that were requested again
	armed   map[string]map[string]int // how often a kind came after an answer from memory, by proof
	stale   map[string]int            // old answers that timestamps do not claim to prevent, by kind
	hits    map[string]int            // answers from memory, by proof
	rolled  map[string]int            // answers with rollups, by proof
	// loadsSeen counts bulk loads after which timestamps let no old answer pass. HBase may
	// compact the file of any of them by itself before somebody asks, and then nothing shows the load.
	loadsSeen int
}

// round is a kind of round.
type round struct {
	living  bool // other rows of the region are written to
	flushed bool // the panels lie in files to begin with, not in memory
	// first is what happens first. Each kind of change happens to a panel of its own: alone;
	// or with flushes and minor compactions; or with more changes, and before a flush and
	// a major compaction. Bulk loads have rounds of their own: a file that was loaded makes
	// all panels of its region be read.
	first string
}

const (
	alone, beside, before, loads = "alone", "beside flushes", "before a major compaction", "bulk loads"
)

var firstGaps = []string{alone, beside, before, loads}

// panel is a question over some hours of a metric, and what is known of its answers.
type panel struct {
	region  int
	from    int64 // s since 1970
	path    string
	history []string
	last    map[string]answer // by proof
	hidden  string            // the first change that timestamps do not claim to see
	changed time.Time         // when it was written to for the last time
	young   bool              // it was changed in this round
	marked  bool              // a job of ours has rewritten it, so it must be read the next time
}

// answer is the groups of an answer, in order, and whether they came from memory or some from rollups.
type answer struct {
	groups             string
	fromMemory, rolled bool
}

func startDrawn(t *testing.T, ctx context.Context, seed uint64) *drawn {
	var splits [][]byte
	for i := 1; i < drawnRegions; i++ {
		splits = append(splits, []byte{0, 0, byte(i + 1)}) // UIDs of metrics are given in order
	}
	tables := createTables(t, splits...)
	w := &drawn{
		T:      t,
		ctx:    ctx,
		rng:    rand.New(rand.NewPCG(seed, 0)),
		seed:   seed,
		base:   time.Now().Add(-time.Hour).UnixMilli(),
		table:  tables.Data,
		state:  tables.Data + "-state",
		stale:  map[string]int{},
		hits:   map[string]int{},
		rolled: map[string]int{},
		armed:  map[string]map[string]int{"exact": {}, "timestamps": {}},
	}
	admin := hbase(t).Admin
	// Small files are compacted by their sizes, too, so that a minor compaction can leave some.
	for key, value := range map[string]string{
		"hbase.hstore.compaction.min.size": "1",
		"hbase.hstore.compaction.min":      "2",
	} {
		if err := admin.Configure(ctx, tables.Data, key, value); err != nil {
			t.Fatal(err)
		}
	}

	var err error
	// Nothing but a reading TSD compacts rows.
	w.tsd, err = e2e.StartOpenTSDB(within(t, 5*time.Minute), e2e.OpenTSDBOptions{
		Quorum:     hbase(t).Quorum(),
		Tables:     tables,
		QuickStart: !*soak,
		Config: map[string]string{
			"tsd.storage.enable_compaction":              "true",
			"tsd.storage.fix_duplicates":                 "true",
			"tsd.http.query.allow_delete":                "true",
			"tsd.storage.compaction.min_flush_threshold": "1000000",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, w.tsd)
	var l layout
	env := func(more ...string) map[string]string {
		env := map[string]string{"DOWNPOUR_FIX_DUPLICATES": "true", "DOWNPOUR_ALLOW_DELETE": "true"}
		for i := 0; i < len(more); i += 2 {
			env[more[i]] = more[i+1]
		}
		return env
	}
	auto := []string{"DOWNPOUR_ROLLUPS", "auto:" + w.makeTablesOfRollups(), "DOWNPOUR_TABLE_STATE", w.state}
	w.env = l.env(t, tables)
	maps.Copy(w.env, env())
	w.truth = l.gateway(t, tables, env("DOWNPOUR_RESULT_CACHE", "off"))
	w.readers = map[string]*e2e.Program{
		"exact":      l.gateway(t, tables, env(auto...)),
		"timestamps": l.gateway(t, tables, env(append(auto, "DOWNPOUR_RESULT_CACHE_PROOF", "timestamps")...)),
	}

	w.putSeries()
	for _, r := range must[[]e2e.Region](t)(admin.Regions(ctx, tables.Data)) {
		w.regions = append(w.regions, r.EncodedName)
	}

	cfg := must[hbasestore.Config](t)(hbasestore.ParseAddress(hbase(t).Quorum()))
	w.store = must[*hbasestore.Store](t)(hbasestore.Open(cfg))
	cfg.Proof, cfg.VersionTimeout = hbasestore.ProofTimestamps, time.Minute
	w.stamps = must[*hbasestore.Store](t)(hbasestore.Open(cfg))
	t.Cleanup(func() { w.store.Close(); w.stamps.Close() })
	w.keepWriting()
	return w
}

// putSeries puts a point of each series, and keeps the rows that they are in.
func (w *drawn) putSeries() {
	w.Helper()
	for i := range drawnRegions {
		for h := range drawnHosts {
			put(w.ctx, w.T, w.truth.URL, []e2e.Point{{
				Metric:    metricOf(i),
				Timestamp: dataStart - 7200,
				Value:     json.RawMessage("1"),
				Tags:      map[string]string{"host": hosts[h]},
			}})
		}
	}
	cells, err := hbase(w.T).Admin.Scan(w.ctx, w.table)
	if err != nil || len(cells) != drawnRegions*drawnHosts {
		w.Fatalf("%d rows, want %d: %v", len(cells), drawnRegions*drawnHosts, err)
	}
	for i, c := range cells {
		w.templates[i/drawnHosts] = append(w.templates[i/drawnHosts], c.Row)
	}
}

func metricOf(region int) string { return fmt.Sprintf("drawn.%02d", region) }

// keepWriting writes to a row of the busy region, until the test ends.
func (w *drawn) keepWriting() {
	w.busy.Store(-1)
	writing, stop := context.WithCancel(w.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-writing.Done():
				return
			case <-tick.C:
				_ = w.writeElsewhere(writing)
			}
		}
	}()
	w.Cleanup(func() { stop(); <-done })
}

// writeElsewhere writes to a row of the busy region that no panel reads.
func (w *drawn) writeElsewhere(ctx context.Context) error {
	region := w.busy.Load()
	if region < 0 {
		return nil
	}
	row := rowAt(w.templates[region][0], dataStart-7200)
	return w.store.Apply(ctx, w.table, []store.Mutation{{
		Kind:      store.Put,
		Row:       row,
		Family:    "t",
		Qualifier: []byte{0, 7},
		Value:     binary.BigEndian.AppendUint64(nil, uint64(w.written.Add(1))),
	}})
}

func rowAt(template []byte, hour int64) []byte {
	row := slices.Clone(template)
	binary.BigEndian.PutUint32(row[3:], uint32(hour)) // the key is metric, 3 bytes, base time, and tags
	return row
}

// round asks for panels of a region, lets things happen to them, and asks again, some times.
func (w *drawn) round(region int, kind round) {
	w.busy.Store(-1)
	if kind.living {
		w.busy.Store(int64(region))
	}
	w.fresh = w.fill(region, kind.flushed)
	panels := append(slices.Clone(w.fresh), w.provableAgain(region)...)

	// What can be proven is from memory before the first change.
	var provable []string
	if !kind.living {
		provable = append(provable, "exact")
	}
	if !kind.living || kind.flushed {
		provable = append(provable, "timestamps")
	}
	w.settle(w.fresh, provable)
	for gap := range drawnGaps {
		if gap > 0 {
			w.settleSome(panels, kind.living)
		}
		w.gap(kind, region, panels, gap == 0)
	}
	w.old[region] = append(w.old[region], panels...)
}

// provableAgain takes a panel of earlier rounds out of their list that was written to so long ago
// that timestamps can prove it again.
func (w *drawn) provableAgain(region int) []*panel {
	for i, p := range w.old[region] {
		if p.hidden == "" && time.Since(p.changed) > provable {
			w.old[region] = slices.Delete(w.old[region], i, i+1)
			p.young = false
			w.again++
			return []*panel{p}
		}
	}
	return nil
}

// fill writes new panels of a region, with cells of an hour ago.
func (w *drawn) fill(region int, flushed bool) (panels []*panel) {
	var cells []store.Mutation
	for range len(rowChanges) { // one for each kind of change but bulk loads, and one that stays
		p := &panel{region: region, from: dataStart + w.nextHour[region]*3600, last: map[string]answer{}}
		w.nextHour[region] += drawnHours + 2
		m := []string{"none:1m-last:%s{host=*}", "sum:10m-sum:%s", "sum:%s", "sum:rate:%s"}[w.rng.IntN(4)]
		p.path = fmt.Sprintf("/api/query?start=%d&end=%d&m="+m, p.from, p.from+drawnHours*3600-1, metricOf(region))
		for _, row := range w.rows(p) {
			for i := range 4 {
				cells = append(cells, store.Mutation{
					Kind:      store.Put,
					Row:       row,
					Family:    "t",
					Qualifier: qualifierAt(i*600 + w.rng.IntN(600)),
					Value:     w.value(),
					Timestamp: w.base,
				})
			}
		}
		panels = append(panels, p)
	}
	if err := w.store.Apply(w.ctx, w.table, cells); err != nil {
		w.Fatal(err)
	}
	if flushed {
		if _, err := hbase(w.T).Admin.Region(w.ctx, w.table, "flush", w.regions[region]); err != nil {
			w.Fatal(err)
		}
	}
	return panels
}

// rows are the keys of all rows of a panel.
func (w *drawn) rows(p *panel) (rows [][]byte) {
	for hour := range int64(drawnHours) {
		for _, template := range w.templates[p.region] {
			rows = append(rows, rowAt(template, p.from+hour*3600))
		}
	}
	return rows
}

// qualifierAt is that of an integer of 8 bytes at a second of an hour.
func qualifierAt(second int) []byte {
	return binary.BigEndian.AppendUint16(nil, uint16(second<<4|7))
}

func (w *drawn) value() []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(w.rng.Int64N(1<<40)))
}

// gap lets things happen, and compares what each reader answers with the truth.
func (w *drawn) gap(kind round, region int, panels []*panel, first bool) {
	type event struct {
		name   string
		of     *panel // nil for the region
		hidden bool
		do     func() (done string, err error)
	}
	var events []event
	kinds := w.firstKinds(kind)
	for i, p := range panels {
		var changes []rowChange
		if !first || kind.first == before {
			for range w.rng.IntN(5) - 2 {
				changes = append(changes, rowChanges[w.rng.IntN(len(rowChanges)-1)])
			}
		}
		if first && i < len(kinds) {
			changes = append(changes, rowChanges[kinds[i]])
		}
		for _, c := range changes {
			events = append(events, event{
				name:   c.name,
				of:     p,
				hidden: c.hidden,
				do:     func() (string, error) { return c.do(w, p) },
			})
		}
	}
	toRegion := func(name string) {
		events = append(events, event{name: name, do: func() (string, error) { return name, w.toRegion(region, name) }})
	}
	if !first || kind.first == beside || kind.first == before {
		all := regionEvents
		if first {
			all = regionEvents[:calmEvents]
		}
		for range 1 + w.rng.IntN(2) {
			toRegion(all[w.rng.IntN(len(all))])
		}
	}
	w.rng.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	if first && kind.first == before {
		toRegion("flush")
		toRegion("major compaction")
	}

	changes := map[*panel][]string{}
	for _, e := range events {
		done, err := e.do()
		if err != nil {
			w.Fatalf("seed %d: %+v: %s: %v", w.seed, kind, e.name, err)
		}
		for _, p := range panels {
			if e.of == p || e.of == nil {
				p.history = append(p.history, done)
			}
		}
		if e.of == nil || done == "" {
			continue
		}
		changes[e.of] = append(changes[e.of], done)
		e.of.changed, e.of.young = time.Now(), true
		if e.hidden && e.of.hidden == "" {
			e.of.hidden = done
		}
	}

	for _, p := range panels {
		w.compareChanged(p, changes[p])
	}
}

// compareChanged asks for a panel after changes, and counts what came after an answer from memory.
func (w *drawn) compareChanged(p *panel, changes []string) {
	loaded := slices.Contains(changes, bulkLoad)
	if loaded && p.hidden == "" {
		p.hidden = bulkLoad
	}
	remembered := p.last["timestamps"].fromMemory
	for proof := range w.readers {
		for _, c := range changes {
			if p.last[proof].fromMemory {
				w.armed[proof][c]++
			}
		}
	}

	w.draws += len(changes)
	w.compare(p, true)
	if loaded && remembered && p.last["timestamps"].groups == p.last["truth"].groups {
		w.loadsSeen++
	}
	if p.marked && p.last["timestamps"].fromMemory {
		w.Fatalf("seed %d: after %s: timestamps answer from memory, so a job has left no marker",
			w.seed, strings.Join(p.history, "; "))
	}
	p.marked = false
}

// firstKinds are the row changes that happen first in a round, each to another panel. Retention comes to
// the first one, for it would delete the rows of those before.
func (w *drawn) firstKinds(kind round) []int {
	last := len(rowChanges) - 1 // bulk loads
	if kind.first == loads {
		return []int{last}
	}
	kinds := w.rng.Perm(last)
	at := slices.IndexFunc(kinds, func(k int) bool { return rowChanges[k].name == retentionJob })
	kinds[0], kinds[at] = kinds[at], kinds[0]
	return kinds
}

// settle asks until all panels are answered from memory under some proofs.
func (w *drawn) settle(panels []*panel, proofs []string) {
	err := e2e.Until(within(w.T, 5*time.Minute), time.Millisecond, func(context.Context) error {
		missing := 0
		for _, p := range panels {
			w.compare(p, len(p.last) == 0)
			for _, proof := range proofs {
				if !p.last[proof].fromMemory {
					missing++
				}
			}
		}
		if missing > 0 {
			return fmt.Errorf("%d answers are not from memory", missing)
		}
		return nil
	})
	if err != nil {
		w.Fatalf("seed %d: %v", w.seed, err)
	}
}

// settleSome asks some times for what may come to be answered from memory.
func (w *drawn) settleSome(panels []*panel, living bool) {
	for range settleAsks {
		for _, p := range panels {
			if !p.last["timestamps"].fromMemory && !(living && p.young) || !p.last["exact"].fromMemory && !living {
				w.compare(p, false)
			}
		}
	}
}

// compare asks all readers for a panel. Their answers must be the truth, which is requested if the
// panel is new.
func (w *drawn) compare(p *panel, isNew bool) {
	if isNew {
		p.last["truth"] = w.ask(w.truth, p)
	}
	want := p.last["truth"].groups
	for _, proof := range slices.Sorted(maps.Keys(w.readers)) {
		got := w.ask(w.readers[proof], p)
		p.last[proof] = got
		if got.fromMemory {
			w.hits[proof]++
		}
		if got.rolled {
			w.rolled[proof]++
		}
		switch {
		case got.groups == want:
		case proof == "timestamps" && p.hidden != "" && (got.fromMemory || got.rolled):
			w.stale[p.hidden]++
		default:
			w.Fatalf("seed %d: %s after %s: from memory %v, got\n%s\nwant\n%s",
				w.seed, proof, strings.Join(p.history, "; "), got.fromMemory, got.groups, want)
		}
	}
}

// ask asks a gateway for a panel. If its region is busy, something is written to it before.
func (w *drawn) ask(g *e2e.Program, p *panel) answer {
	if err := w.writeElsewhere(w.ctx); err != nil {
		w.Fatal(err)
	}
	a, err := e2e.Get(w.ctx, g.URL+p.path+"&trace=true")
	if err != nil || a.Status != 200 {
		w.Fatalf("seed %d: after %s: %s: error %v, %d %s",
			w.seed, strings.Join(p.history, "; "), p.path, err, a.Status, a.Body)
	}
	return tracedAnswer(w.T, p.path, a.Body)
}

// tracedAnswer reads an answer that ends with a trace.
func tracedAnswer(t *testing.T, path string, body []byte) answer {
	t.Helper()
	var all []json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil || len(all) == 0 {
		t.Fatalf("%s: error %v, answer %s", path, err, body)
	}
	trace := all[len(all)-1] // the last element
	if !bytes.HasPrefix(trace, []byte(`{"trace"`)) {
		t.Fatalf("%s: the last element is no trace: %s", path, trace)
	}
	groups := make([]string, len(all)-1)
	for i := range groups {
		groups[i] = string(all[i])
	}
	sort.Strings(groups)
	return answer{
		groups:     strings.Join(groups, "\n"),
		fromMemory: bytes.Contains(trace, []byte("answered from memory")),
		rolled:     bytes.Contains(trace, []byte(`"rollups":"table `)),
	}
}

// report fails if a kind of change never came after an answer from memory, or if no bulk load
// was seen.
func (w *drawn) report() {
	if w.loadsSeen == 0 {
		w.Errorf("seed %d: timestamps saw none of the bulk loads", w.seed)
	}
	for _, c := range rowChanges {
		w.Logf("%-32s after %d answers from memory by exact, %d by timestamps; %d old answers",
			c.name, w.armed["exact"][c.name], w.armed["timestamps"][c.name], w.stale[c.name])
		for proof, n := range w.armed {
			if n[c.name] == 0 {
				w.Errorf("%s never came after an answer from memory by %s", c.name, proof)
			}
		}
	}
	// In few rounds there may be none: their days are changed all the time.
	if *soak && w.rolled["timestamps"] == 0 {
		w.Errorf("seed %d: no answer was made of rollups", w.seed)
	}
	w.Logf("%d changes; answers from memory: %v; with rollups: %v; panels of earlier rounds: %d; "+
		"cells written elsewhere: %d", w.draws, w.hits, w.rolled, w.again, w.written.Load())
}
