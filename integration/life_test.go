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
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/integration/differential"
	"downpour/integration/e2e"
	"downpour/pushdown/store"
	storehbase "downpour/pushdown/store/hbase"
)

// TestLife: all that happens to data happens at once. Two gateways and two TSDs put points, late, over
// others and at the present time, and delete them; one TSD compacts rows as it reads them, a pushdown server
// does in the background; gateway compact, retention, rollup and fsck run again and again;
// programs are killed and started again, regions split and move, memory is flushed and
// files are compacted.
//
// Three gateways are asked all the time: one remembers answers by the proof exact, one by timestamps, and
// one nothing. No point that was acknowledged is lost, changed or there twice, and
// none is back that was deleted. Between rounds nobody writes, while the jobs go on. Then all of a fixed set of queries
// get the same answer from the three and from OpenTSDB. In the end each row has one
// cell, and after a major compaction the answers are the same.
//
// Who writes what is such that no loss is OpenTSDB's own, which TestCompaction_lossOfOpenTSDB shows:
//   - The TSD that compacts rows deletes columns up to now, and puts what it read a while ago. So it
//     neither reads nor writes rows in which points are written over or deleted.
//   - A TSD that ends a deletion with an error may go on with it, so these rows are left alone.
//   - OpenTSDB's client loses points that it has acknowledged after regions were merged, so none are:
//     TestLife_merges merges some, and there TSDs only answer.
//   - OpenTSDB reads a row of more than 4096 cells in two parts, and of a point that each of them has it
//     answers the older value. So points that are written over again and again are few in a row.
//   - OpenTSDB's row compaction does not count points of two cells with one timestamp, so none is
//     written again within 5 ms.
//
// All servers of this test have one clock. Clocks that differ are drawn by TestOrders_clocks of
// pushdown/compaction, on a fake HBase.
func TestLife(t *testing.T) {
	lasts, rounds := 2*time.Minute, 6
	if *soak {
		lasts, rounds = 30*time.Minute, 60
	}
	live(t, lasts, rounds, false)
}

// TestLife_merges: regions are merged, too, and gateways alone write and compact. What OpenTSDB's
// client loses then would hide what we lose.
func TestLife_merges(t *testing.T) {
	lasts, rounds := 2*time.Minute, 6
	if *soak {
		lasts, rounds = 8*time.Minute, 24
	}
	live(t, lasts, rounds, true)
}

// live is TestLife for a time, and TestLife_merges.
func live(t *testing.T, lasts time.Duration, rounds int, merges bool) {
	l := startLife(t, within(t, 8*time.Minute+2*lasts), seedtest.Of(t), merges)
	l.rounds = rounds

	stop, cancel := context.WithCancel(l.ctx)
	var jobs sync.WaitGroup
	for _, job := range l.jobs(stop) {
		jobs.Go(job)
	}
	for l.round.Store(1); l.round.Load() <= int64(rounds) && !t.Failed(); l.round.Add(1) {
		began := time.Now()
		l.writeAndAsk(lasts / time.Duration(rounds))
		l.atRest("between writers")
		t.Logf("round %d, %.1f s: %s", l.round.Load(), time.Since(began).Seconds(), l.counts.text())
	}
	if !t.Failed() {
		l.awaitJobs()
	}
	cancel()
	jobs.Wait()
	if !t.Failed() {
		l.end()
	}
}

// Metrics of the test, in the order of their UIDs. Each has a region of its own to begin with.
const (
	lifeOver  = "life.over"  // points are written over and late
	lifeLate  = "life.late"  // points come late, and a TSD compacts the rows
	lifeGone  = "life.gone"  // hours are deleted and written again
	lifeRoll  = "life.roll"  // days whose rollups are made
	lifePast  = "life.past"  // hours that retention deletes, and younger ones
	lifeStill = "life.still" // hours of old cells, whose answers are remembered
	lifeNow   = "life.now"   // points of the present time, and a TSD compacts the rows
)

var lifeMetrics = []string{lifeOver, lifeLate, lifeGone, lifeRoll, lifePast, lifeStill, lifeNow}

const (
	lifeStart = madeStart // a midnight
	lifeHours = 3         // of lifeOver and lifeLate
	lifeStep  = 120       // s between points that are there from the beginning
	rollDays  = 2
	// Hours that are deleted are apart: a deletion takes the rows that a query reads, also of the
	// hour behind its end.
	apart      = 3 * encoding.RowSeconds
	goneHours  = 12
	stillHours = 60
	stillPanel = 2 // hours that are requested together
	// Rows of lifePast go after pastHours. Its points lie 1 to 2 hours before now, or 8 to 10.
	pastHours = 5
)

// life is all that runs.
type life struct {
	*testing.T
	ctx    context.Context
	seed   uint64
	l      layout
	tables e2e.Tables
	state  string // table
	model  *model
	store  *storehbase.Store
	now    int64 // when the test began, at the full hour

	// What is remembered is proven by timestamps, exactly, or there is nothing.
	timestamps, exact, plain *e2e.Program
	server                   *e2e.Program // compacts in the background
	writing, compacting      *e2e.OpenTSDB
	rules, rollups           string // files

	stopLiving func() // ends what is written to a region whose answers are remembered
	// byHand is held by gateway compact, and while the pushdown server is made to start from scratch.
	byHand sync.Mutex
	merges bool // regions are merged, and TSDs only answer
	rounds int
	round  atomic.Int64
	lost   sync.Map // hours for which nobody knows what a TSD still deletes, as the pointID of an empty host
	counts lifeCounts
	// examined says that what is left of a lost point was looked at.
	examined atomic.Bool
}

// startLife makes the tables, starts all servers and puts what is there from the beginning.
func startLife(t *testing.T, ctx context.Context, seed uint64, merges bool) *life {
	t.Helper()
	var splits [][]byte
	for i := range lifeMetrics[1:] {
		splits = append(splits, []byte{0, 0, byte(i + 2)})
	}
	l := &life{
		T:      t,
		ctx:    ctx,
		seed:   seed,
		l:      layout{name: "plain"},
		tables: createTables(t, splits...),
		model:  newModel(),
		merges: merges,
	}
	l.counts.memory = map[string]int{}
	l.now = time.Now().Unix() / encoding.RowSeconds * encoding.RowSeconds
	l.state = l.tables.Data + "-state"
	for _, table := range differential.RollupTables(l.tables.Data) {
		if err := hbase(t).Admin.CreateTable(ctx, table, "NONE", []string{"t"}); err != nil {
			t.Fatal(err)
		}
	}
	l.rollups = writeFile(t, "rollups.json", differential.RollupConfig(l.tables.Data))
	l.rules = writeFile(t, "rules.txt", fmt.Sprintf("^life\\.past$ %dh\n. keep\n", pastHours))

	l.store = must[*storehbase.Store](t)(
		storehbase.Open(must[storehbase.Config](t)(storehbase.ParseAddress(hbase(t).Quorum()))),
	)
	t.Cleanup(func() { l.store.Close() })
	l.startWriting()
	gateway := func(more ...string) *e2e.Program {
		return startGateway(t, e2e.ProgramOptions{
			Env: l.env(append(more, "DOWNPOUR_AUTO_METRICS", "true", "DOWNPOUR_ALLOW_DELETE", "true")...),
		})
	}
	auto := "auto:" + l.rollups
	l.timestamps = gateway("DOWNPOUR_RESULT_CACHE_PROOF", "timestamps", "DOWNPOUR_ROLLUPS", auto)
	l.exact = gateway("DOWNPOUR_PUT_CELLS", "multi", "DOWNPOUR_ROLLUPS", auto)
	a := must[e2e.Answer](t)(
		e2e.Post(ctx, l.timestamps.URL+"/api/uid/assign", map[string][]string{"metric": lifeMetrics}),
	)
	if a.Status != 200 {
		t.Fatalf("assign: %d %s", a.Status, a.Body)
	}
	l.putFirst()

	// A server that finds no rows takes their hours for done.
	l.server = must[*e2e.Program](t)(e2e.StartPushdown(ctx, e2e.ProgramOptions{
		Env: l.env("DOWNPOUR_COMPACT", "20", "DOWNPOUR_COMPACT_MARGIN", "2s", "DOWNPOUR_RESULT_CACHE", "off"),
	}))
	closeAtEnd(t, l.server)
	l.plain = gateway("DOWNPOUR_RESULT_CACHE", "off", "DOWNPOUR_PUSHDOWN", l.server.Addr)
	// It compacts rows from its start on, so names that are not there yet cannot hinder it.
	l.compacting = l.startTSD(map[string]string{"tsd.storage.enable_compaction": strconv.FormatBool(!merges),
		"tsd.storage.compaction.flush_interval": "1", "tsd.storage.compaction.min_flush_threshold": "1"})
	for _, url := range []string{l.writing.URL, l.compacting.URL} {
		if err := e2e.LoadNames(ctx, url); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// env is the environment of a program of ours, with further names and values.
func (l *life) env(more ...string) map[string]string {
	env := l.l.env(l.T, l.tables)
	delete(env, "DOWNPOUR_AUTO_METRICS")
	maps.Copy(env, map[string]string{"DOWNPOUR_FIX_DUPLICATES": "true", "DOWNPOUR_TABLE_STATE": l.state})
	for i := 0; i < len(more); i += 2 {
		env[more[i]] = more[i+1]
	}
	return env
}

func (l *life) startTSD(more map[string]string) *e2e.OpenTSDB {
	l.Helper()
	config := map[string]string{"tsd.storage.fix_duplicates": "true"}
	maps.Copy(config, more)
	tsd := must[*e2e.OpenTSDB](l.T)(e2e.StartOpenTSDB(l.ctx, l.l.tsdOptions(l.T, l.tables, config)))
	closeAtEnd(l.T, tsd)
	return tsd
}

// startWriting starts the TSD that compacts nothing.
func (l *life) startWriting() {
	l.writing = l.startTSD(map[string]string{"tsd.http.query.allow_delete": "true"})
}

func lifeHost(i int) string { return fmt.Sprint("h", i) }

// putFirst puts the points that are there from the beginning.
func (l *life) putFirst() {
	var points []e2e.Point
	add := func(metric string, series int, from, to, step int64) {
		for s := range series {
			for at := from; at < to; at += step {
				points = append(points, pointAt(metric, lifeHost(s), at))
			}
		}
	}
	add(lifeOver, 6, lifeStart, lifeStart+lifeHours*3600, lifeStep)
	add(lifeLate, 4, lifeStart, lifeStart+lifeHours*3600, lifeStep)
	for h := range int64(goneHours) {
		add(lifeGone, 2, lifeStart+h*apart, lifeStart+h*apart+3600, 600)
	}
	add(lifeRoll, 3, lifeStart, lifeStart+rollDays*86400, 600)
	add(lifePast, 2, l.now-2*3600, l.now-3600, 600)
	add(lifeNow, 4, l.now, l.now+1, 1)
	if err := l.model.put(l.ctx, l.timestamps.URL, points); err != nil {
		l.Fatal(err)
	}
	l.putPast(rand.New(rand.NewPCG(l.seed, 99)))
	l.putStill()
}

// putStill writes rows of one cell that are as old as the proof timestamps asks for, and flushes
// them. Another row of their region is written to as long as the test runs.
func (l *life) putStill() {
	put(l.ctx, l.T, l.timestamps.URL, []e2e.Point{{
		Metric:    lifeStill,
		Timestamp: lifeStart - 7200,
		Value:     json.RawMessage("1"),
		Tags:      map[string]string{"host": lifeHost(0)},
	}})
	var template []byte
	for _, c := range must[[]e2e.Cell](l.T)(hbase(l.T).Admin.Scan(l.ctx, l.tables.Data)) {
		if bytes.HasPrefix(c.Row, rowPrefix(lifeStill, lifeStart-7200)) {
			template = c.Row
		}
	}

	var cells []store.Mutation
	for h := range int64(stillHours) {
		at := lifeStart + h*apart
		l.model.set(pointID{lifeStill, lifeHost(0), at}, firstValue)
		cells = append(cells, store.Mutation{
			Kind:      store.Put,
			Row:       rowAt(template, at),
			Family:    encoding.FamilyData,
			Qualifier: qualifierAt(0),
			Value:     binary.BigEndian.AppendUint64(nil, firstValue),
			Timestamp: time.Now().Add(-time.Hour).UnixMilli(),
		})
	}
	if err := l.store.Apply(l.ctx, l.tables.Data, cells); err != nil {
		l.Fatal(err)
	}
	if err := hbase(l.T).Admin.Flush(l.ctx, l.tables.Data); err != nil {
		l.Fatal(err)
	}

	writing, stop := context.WithCancel(l.ctx)
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := uint64(0); pause(writing, 5*time.Millisecond); n++ {
			_ = l.store.Apply(writing, l.tables.Data, []store.Mutation{
				{Kind: store.Put, Row: rowAt(template, lifeStart-7200), Family: encoding.FamilyData,
					Qualifier: qualifierAt(1), Value: binary.BigEndian.AppendUint64(nil, n)},
			})
		}
	})
	l.stopLiving = func() { stop(); writer.Wait() }
	l.Cleanup(l.stopLiving)
}

// rowPrefix is the begin of the keys of a metric's rows from an hour on.
func rowPrefix(metric string, at int64) []byte {
	for i, m := range lifeMetrics {
		if m == metric {
			return binary.BigEndian.AppendUint32([]byte{0, 0, byte(i + 1)}, uint32(at))
		}
	}
	panic("no metric " + metric)
}

// query is a query of single points, or of what m makes of a metric, over all of the metric's time.
func (l *life) query(metric, m string) string {
	from, to := int64(lifeStart), int64(lifeStart+stillHours*apart-1)
	switch metric {
	case lifePast:
		from, to = l.now-12*3600, l.now-1
		if m != "none:%s" {
			from = l.now - 3*3600 // others go at any time
		}
	case lifeNow:
		from, to = l.now, l.now+3*3600
	}
	return fmt.Sprintf("/api/query?start=%d&end=%d&arrays=true&m=%s", from, to, fmt.Sprintf(m, metric))
}

// lifeQueries are the queries of each metric. The first three are asked of OpenTSDB, too.
var lifeQueries = []string{
	"none:%s", "sum:5m-avg:%s", "max:10m-max:%s%%7Bhost=*%%7D", "sum:%s", "sum:rate:%s", "sum:1h-sum:%s",
	"max:1d-max:%s%%7Bhost=*%%7D", "avg:2h-min:%s", "sum:1h-count:%s",
}

// gateways are the three that are asked, by what they remember.
func (l *life) gateways() map[string]*e2e.Program {
	return map[string]*e2e.Program{"timestamps": l.timestamps, "exact": l.exact, "no cache": l.plain}
}
