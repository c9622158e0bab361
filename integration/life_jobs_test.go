//go:build integration

package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"

	"downpour/encoding"
	"downpour/integration/differential"
	"downpour/integration/e2e"
	"downpour/pushdown/store"
)

// jobs are what runs until stop ends: each is one job after another, and some jobs are killed.
func (l *life) jobs(stop context.Context) []func() {
	sealed := l.sealed()
	rollup := []string{
		"rollup", "-margin", "2s", strconv.Itoa(lifeStart), strconv.Itoa(lifeStart + rollDays*86400 - 1),
		lifeRoll,
	}
	return []func(){
		// The other rows are for the pushdown server, and for jobs that are killed.
		l.again(stop, 1, func(rng *rand.Rand) { l.compactByHand(append(sealed[:2:2], lifeOver, lifeStill), "2s") }),
		l.again(stop, 2, func(rng *rand.Rand) {
			l.killed(rng, append([]string{"compact", "-margin", "2s"}, sealed...)...)
		}),
		l.again(stop, 3, func(rng *rand.Rand) {
			if rng.IntN(3) == 0 {
				l.killed(rng, "retention", "run")
				return
			}
			l.retain()
		}),
		// Its records are in the table that gateways read, so one that is killed is waited for.
		l.again(stop, 4, func(rng *rand.Rand) {
			if rng.IntN(5) == 0 && !l.lastRounds() {
				l.kill(rng, l.rollEnv(), rollup...)
				return
			}
			if _, ok := l.command(l.rollEnv(), 0, rollup...); ok {
				l.counts.rolled.Add(1)
			}
		}),
		l.again(stop, 5, l.fsck),
		l.again(stop, 6, l.changeRegions),
	}
}

// lastRounds says that nobody is killed any more who holds a lease.
func (l *life) lastRounds() bool { return l.round.Load() > int64(l.rounds*2/3) }

// again runs a job again and again.
func (l *life) again(stop context.Context, number uint64, job func(rng *rand.Rand)) func() {
	rng := rand.New(rand.NewPCG(l.seed, 1000+number))
	return func() {
		for pause(stop, 500*time.Millisecond) && !l.Failed() {
			job(rng)
		}
	}
}

// sealed are the times and metrics of all rows that are over but those of lifePast.
func (l *life) sealed() []string {
	return []string{
		strconv.Itoa(lifeStart), strconv.Itoa(lifeStart + stillHours*apart - 1), lifeOver, lifeLate, lifeGone,
		lifeRoll, lifeStill,
	}
}

// command runs the gateway's program, which must end with one of the statuses 0 to most.
func (l *life) command(env map[string]string, most int, args ...string) (out string, ok bool) {
	l.Helper()
	status, out, err := e2e.Run(l.ctx, gatewayProgram, e2e.ProgramOptions{Env: env, Dir: l.TempDir(), Args: args})
	if err != nil || status < 0 || status > most {
		l.wrong("%q: status %d, %v, %s", args, status, err, out)
		return out, false
	}
	return out, true
}

// kill runs a command and kills it, in the middle if it lasts that long.
func (l *life) kill(rng *rand.Rand, env map[string]string, args ...string) {
	brief, cancel := context.WithTimeout(l.ctx, time.Duration(100+rng.IntN(1500))*time.Millisecond)
	defer cancel()
	if _, _, err := e2e.Run(brief, gatewayProgram,
		e2e.ProgramOptions{Env: env, Dir: l.TempDir(), Args: args}); err != nil {
		l.counts.killed.Add(1)
	} else {
		l.counts.unharmed.Add(1)
	}
}

// killed runs a command with leases of its own, so that it works next to another one on the same
// rows, and kills it. Leases are no part of what keeps points, and nobody waits for those of the
// dead.
func (l *life) killed(rng *rand.Rand, args ...string) {
	env := l.env("DOWNPOUR_RETENTION", l.rules)
	env["DOWNPOUR_TABLE_STATE"] = fmt.Sprintf("%s-%s%d", l.state, args[0], rng.Uint32())
	l.kill(rng, env, args...)
	// It may not have come to making the table.
	_ = hbase(l.T).Admin.DropTable(l.ctx, env["DOWNPOUR_TABLE_STATE"])
}

var compactedRows = regexp.MustCompile(`\d+ rows: (\d+) compacted`)

func (l *life) compactByHand(words []string, margin string) {
	l.byHand.Lock()
	defer l.byHand.Unlock()
	out, ok := l.command(l.env(), 0, append([]string{"compact", "-margin", margin}, words...)...)
	if m := compactedRows.FindStringSubmatch(out); ok && m != nil {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		l.counts.compacted.Add(n)
	} else if ok {
		l.wrong("gateway compact: %s", out)
	}
}

var retainedRows = regexp.MustCompile(`(\d+) rows were past, (\d+) deleted`)

func (l *life) retain() {
	out, ok := l.command(l.env("DOWNPOUR_RETENTION", l.rules), 0, "retention", "run")
	if m := retainedRows.FindStringSubmatch(out); ok && m != nil {
		n, _ := strconv.ParseInt(m[2], 10, 64)
		l.counts.retained.Add(n)
	} else if ok && !strings.Contains(out, "0 rows") {
		l.wrong("gateway retention run: %s", out)
	}
}

func (l *life) rollEnv() map[string]string { return l.env("DOWNPOUR_ROLLUPS", "auto:"+l.rollups) }

// fsck repairs what it takes for damage: points that are there in two forms. It ends with 1 if it has left some,
// because of what others wrote at the same time. It also compacts rows, but not before the pushdown server has: queries
// keep that server waiting, and fsck would leave it none.
func (l *life) fsck(rng *rand.Rand) {
	args := []string{"fsck", "--fix-all", "--last-write-wins"}
	if l.background() > 0 {
		args = append(args, "--compact")
	}
	_, ok := l.command(l.env(), 1, append(args, strconv.Itoa(lifeStart),
		strconv.Itoa(lifeStart+lifeHours*encoding.RowSeconds-1), "sum", lifeOver)...)
	if ok {
		l.counts.fscked.Add(1)
	}
}

// killServer kills the pushdown server in the middle of what it does, and starts it again. It goes on, or starts
// from scratch with all hours. The first time it is killed once it has compacted rows while others write: queries go
// before that, so it may take a while.
func (l *life) killServer(anew bool) {
	began := time.Now()
	err := l.until(2*time.Minute, 100*time.Millisecond, func(context.Context) error {
		if l.background() == 0 {
			return errors.New("the pushdown server has compacted no row")
		}
		return nil
	})
	if err != nil {
		l.wrong("%v", err)
	}
	l.Logf("pushdown server killed after %.1f s, %d rows compacted", time.Since(began).Seconds(), l.background())
	l.counts.before.Add(int64(l.compactedByServer()))
	l.server.Process.Kill()
	if anew {
		l.byHand.Lock() // whose lease may be one of those
		l.forgetDone()
		l.byHand.Unlock()
	}
	if err := l.server.Restart(l.ctx); err != nil {
		l.wrong("pushdown server: %v", err)
	}
}

// forgetDone deletes what is kept of hours that are compacted.
func (l *life) forgetDone() {
	var rows []store.Mutation
	for row, err := range store.Rows(l.ctx, l.store, store.Scan{
		Table:  l.state,
		Family: "s",
		Start:  []byte("lease/compact/"),
		Stop:   []byte("lease/compact0"),
	}) {
		if err != nil {
			l.wrong("reading leases: %v", err)
			return
		}
		rows = append(rows, store.Mutation{Kind: store.DeleteRow, Row: bytes.Clone(row.Key), Family: "s"})
	}
	if err := l.store.Apply(l.ctx, l.state, rows); err != nil {
		l.wrong("deleting leases: %v", err)
	}
}

var compactedTotal = regexp.MustCompile(`(?m)^downpour_compaction_compacted_total (\S+)$`)

// compactedByServer is how many rows the pushdown server has compacted since its start.
func (l *life) compactedByServer() (n float64) {
	a, _ := l.get("http://" + l.server.Addr + "/metrics")
	if m := compactedTotal.FindSubmatch(a.Body); m != nil {
		n, _ = strconv.ParseFloat(string(m[1]), 64)
	}
	return n
}

// background is how many rows the pushdown server has compacted in all.
func (l *life) background() int64 { return l.counts.before.Load() + int64(l.compactedByServer()) }

// done counts what has to happen to the data, however fast the machine is: what jobs do as long as they run, or the
// pushdown server before it is killed.
func (l *life) done() map[string]int64 {
	counts := map[string]int64{
		"rows compacted by the pushdown server": l.background(),
		"runs of rollup":                        l.counts.rolled.Load(),
		"runs of fsck":                          l.counts.fscked.Load(),
		"runs killed":                           l.counts.killed.Load(),
		"splits":                                l.counts.splits.Load(),
		"moves":                                 l.counts.moves.Load(),
	}
	if l.merges {
		counts["merges"] = l.counts.merges.Load()
	}
	return counts
}

// awaitJobs lets the jobs go on until each has done something: on a slow machine the rounds may be too short for that.
func (l *life) awaitJobs() {
	err := l.until(2*time.Minute, 200*time.Millisecond, func(context.Context) error {
		if l.Failed() {
			return nil
		}
		counts := l.done()
		if !l.merges {
			counts["cells deleted by OpenTSDB's compaction"] = l.deletedByTSD()
		}
		for what, n := range counts {
			if n == 0 {
				return fmt.Errorf("no %s", what)
			}
		}
		return nil
	})
	if err != nil {
		l.wrong("%v", err)
	}
}

// mostLifeRegions is where splitting ends.
const mostLifeRegions = 16

// changeRegions splits, moves, flushes or compacts regions. HBase refuses some of that while other
// things happen to a region. It merges none where TSDs write: OpenTSDB's client may look forever for a region
// that was merged, and in the meantime acknowledge points that it has not written, also with sync.
func (l *life) changeRegions(rng *rand.Rand) {
	admin := hbase(l.T).Admin
	table := l.tables.Data
	if rng.IntN(4) == 0 {
		others := append(differential.RollupTables(l.tables.Data), l.tables.UID, l.state)
		table = others[rng.IntN(len(others))]
	}
	regions, err := admin.Regions(l.ctx, table)
	if err != nil || len(regions) == 0 {
		return
	}
	i := rng.IntN(len(regions))
	r := regions[i]
	// For a while answers of its rows are remembered; a region that was just opened has none.
	if l.isStill(r) && !l.lastRounds() {
		return
	}

	switch n := rng.IntN(8); {
	case n < 2 && table == l.tables.Data && len(regions) < mostLifeRegions:
		metric := lifeMetrics[rng.IntN(4)]
		if admin.Split(l.ctx, table, rowPrefix(metric, lifeStart+rng.Int64N(goneHours)*apart)) == nil {
			l.counts.splits.Add(1)
		}
	case n < 4 && l.merges && table == l.tables.Data && len(regions) > 8 && i > 0 && !l.isStill(r) &&
		!l.isStill(regions[i-1]):
		if admin.Merge(l.ctx, table, regions[i-1].EncodedName, r.EncodedName) == nil {
			l.counts.merges.Add(1)
		}
	case n < 6:
		for s := range hbase(l.T).Len() {
			to := hbase(l.T).RegionServerAddr(s)
			if to != r.Server && admin.Move(l.ctx, table, r.EncodedName, to) == nil {
				l.counts.moves.Add(1)
				break
			}
		}
	default:
		_, _ = admin.Region(l.ctx, table,
			[]string{"flush", "flush", "minor compaction", "major compaction"}[rng.IntN(4)], r.EncodedName)
	}
}

func (l *life) isStill(r e2e.Region) bool {
	return bytes.HasPrefix(r.Start, rowPrefix(lifeStill, 0)[:3])
}

// end ends all jobs' work once nobody writes, compares everything again, also after a major
// compaction, and checks that all has happened that should have.
func (l *life) end() {
	l.stopLiving() // the proof exact is for regions at rest
	deleted := int64(1)
	if !l.merges {
		deleted = l.deletedByTSD()
	}
	// It compacts what it has read at its end.
	if err := l.compacting.Close(); err != nil {
		l.Error(err)
	}
	past := []string{strconv.FormatInt(l.now-12*3600, 10), strconv.FormatInt(l.now-1, 10), lifePast}
	l.compactByHand(l.sealed(), "0s")
	l.retain()
	l.compactByHand(past, "0s")
	l.Logf("%d points were past", l.model.expired())
	rollup := func(context.Context) error {
		out, _ := l.command(l.rollEnv(), 0, "rollup", "-margin", "0s", strconv.Itoa(lifeStart),
			strconv.Itoa(lifeStart+rollDays*86400-1), lifeRoll)
		if said, ok := l.readsRollups(); !ok {
			return fmt.Errorf("rollups are not read after %s: %s", out, said)
		}
		return nil
	}
	if err := l.until(time.Minute, time.Second, rollup); err != nil {
		l.wrong("%v", err)
	}

	l.atRest("in the end")
	l.oneCell()
	if err := hbase(l.T).Admin.Flush(l.ctx, l.tables.Data); err != nil {
		l.Fatal(err)
	}
	if err := hbase(l.T).Admin.Compact(l.ctx, l.tables.Data); err != nil {
		l.Fatal(err)
	}
	l.atRest("after a major compaction")
	l.command(l.env(), 0, "fsck", "--full-scan")
	if err := realFsck(l.ctx, l.writing, 0); err != nil {
		l.Error(err)
	}

	done := l.done()
	l.Logf("%s; %d rows compacted by the pushdown server", l.counts.text(), l.background())
	if n := l.counts.merges.Load(); !l.merges && n > 0 {
		l.Errorf("seed %d: %d merges", l.seed, n)
	}
	maps.Copy(done, map[string]int64{
		"rows compacted by hand":                 l.counts.compacted.Load(),
		"cells deleted by OpenTSDB's compaction": deleted,
		"rows deleted by retention":              l.counts.retained.Load(),
		"deletions":                              l.counts.deletes.Load(),
		"answers from memory by exact":           int64(l.counts.memory["exact"]),
		"answers from memory by timestamps":      int64(l.counts.memory["timestamps"]),
	})
	for what, n := range done {
		if n == 0 {
			l.Errorf("seed %d: no %s", l.seed, what)
		}
	}
}

var deletedCells = regexp.MustCompile(`(?m)^tsd\.compaction\.deletes \d+ (\d+)`)

// deletedByTSD is how many cells the TSD that compacts rows has deleted.
func (l *life) deletedByTSD() (n int64) {
	a, _ := l.get(l.compacting.URL + "/stats")
	m := deletedCells.FindSubmatch(a.Body)
	if m == nil {
		l.wrong("no count of deleted cells in %.3000s", a.Body)
		return 0
	}
	n, _ = strconv.ParseInt(string(m[1]), 10, 64)
	return n
}

// oneCell checks that each row has one cell, except for those of the present time.
func (l *life) oneCell() {
	cells := map[string]int{}
	for _, c := range must[[]e2e.Cell](l.T)(hbase(l.T).Admin.Scan(l.ctx, l.tables.Data)) {
		cells[string(c.Row)]++
	}
	for _, metric := range lifeMetrics {
		rows, single := 0, 0
		for row, n := range cells {
			// One row is written to all the time.
			if strings.HasPrefix(row, string(rowPrefix(metric, 0)[:3])) &&
				!strings.HasPrefix(row, string(rowPrefix(lifeStill, lifeStart-7200))) {
				rows++
				if n == 1 {
					single++
				}
			}
		}
		if want := l.model.rows(metric); metric != lifeNow && (rows != want || single != rows) {
			l.wrong("%s: %d rows, %d of one cell, want %d of one cell each", metric, rows, single, want)
		}
	}
}
