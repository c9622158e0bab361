//go:build integration

package integration

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"downpour/encoding"
	"downpour/gateway/extra/retention"
	"downpour/gateway/extra/retention/rules"
	"downpour/gateway/uid"
	"downpour/integration/differential"
	"downpour/integration/e2e"
	"downpour/pushdown/compaction"
	"downpour/pushdown/lease"
	"downpour/pushdown/rollup"
	"downpour/pushdown/rollupjob"
	"downpour/pushdown/store"
)

// jobMargin is the age from which on rows are compacted: all that are not written to in this moment.
const jobMargin = 10 * time.Millisecond

// compactByJob compacts the rows of a panel, as gateway compact does.
func compactByJob(w *drawn, p *panel) (string, error) {
	var compacted int64
	job := compaction.Job{
		Store:         w.store,
		Table:         w.table,
		Schema:        encoding.DefaultSchema(),
		FixDuplicates: true,
		Margin:        jobMargin,
		Now:           time.Now,
		Reached:       func(done compaction.Counts, _ []byte) { compacted += done.Compacted },
	}
	return w.rewritten(p, "compaction by a job", func(row []byte) (bool, error) {
		before := compacted
		err := job.Run(w.ctx, store.KeyRange{Start: row, Stop: append(slices.Clone(row), 0)}, nil)
		return compacted > before, err
	})
}

// rewritten calls change for each row of a panel, which returns whether it has changed it, and returns a
// name if it has changed any. If each hour has a changed row, the panel must be read the next time: the
// cells that a job writes are as old as those they replace, so only its marker shows the change.
func (w *drawn) rewritten(p *panel, name string, change func(row []byte) (bool, error)) (string, error) {
	changed := map[int]int{} // rows by hour
	for i, row := range w.rows(p) {
		did, err := change(row)
		if err != nil {
			return "", err
		}
		if did {
			changed[i/drawnHosts]++
		}
	}
	p.marked = p.marked || len(changed) == drawnHours
	if len(changed) == 0 {
		return "", nil
	}
	return name, nil
}

// repairByJob lets gateway fsck make one cell of the cells of each row.
func repairByJob(w *drawn, p *panel) (string, error) {
	before, err := w.cellsOf(p)
	if err != nil {
		return "", err
	}
	args := []string{
		"fsck", "--fix-all", "--last-write-wins", "--compact", strconv.FormatInt(p.from, 10),
		strconv.FormatInt(p.from+drawnHours*3600-1, 10), "sum", metricOf(p.region),
	}
	// 1 is that it has found something.
	status, out, err := e2e.Run(w.ctx, gatewayProgram, e2e.ProgramOptions{Env: w.env, Dir: w.TempDir(), Args: args})
	if err != nil || status < 0 || status > 1 {
		return "", fmt.Errorf("%q: status %d, %w, %s", args, status, err, out)
	}

	after, err := w.cellsOf(p)
	if err != nil {
		return "", err
	}
	return w.rewritten(p, "repair by fsck", func(row []byte) (bool, error) {
		return before[string(row)] != after[string(row)], nil
	})
}

// cellsOf returns the cells of each row of a panel as text.
func (w *drawn) cellsOf(p *panel) (map[string]string, error) {
	out := map[string]string{}
	rows, err := w.store.Get(w.ctx, w.table, "t", w.rows(p))
	for _, r := range rows {
		for _, c := range r.Cells {
			out[string(r.Key)] += fmt.Sprintf("%x %x %d;", c.Qualifier, c.Value, c.Timestamp)
		}
	}
	return out, err
}

// retainByJob deletes what is older than a panel's second hour: of a round's panels only the first one's
// rows, and those of all earlier rounds.
func retainByJob(w *drawn, p *panel) (string, error) {
	if slices.ContainsFunc(w.fresh, func(o *panel) bool { return o.from < p.from }) {
		return "", nil
	}
	const age = 24 * 3600
	cut := p.from + 3600
	one := func(context.Context) iter.Seq2[uid.Entry, error] {
		return func(yield func(uid.Entry, error) bool) {
			yield(uid.Entry{Name: metricOf(p.region), UID: encoding.UID(w.templates[p.region][0][:3])}, nil)
		}
	}
	job := retention.Job{
		Store:  w.store,
		Schema: encoding.DefaultSchema(),
		Tables: []retention.Table{{Name: w.table, Span: rules.Hour}},
		Rules:  rules.All(age),
		Names:  one,
		Now:    func() time.Time { return time.Unix(cut+age, 0) },
	}
	report, err := job.Run(w.ctx, 0, 1<<40)
	if err != nil {
		return "", err
	}

	for _, o := range w.old[p.region] {
		if o.from < cut {
			o.changed = time.Now()
			o.history = append(o.history, "retention of a later panel")
		}
	}
	if report.Deleted == 0 {
		return "", nil
	}
	return retentionJob, nil
}

// rollupsEvent makes rollups of a region's metric, which gateways may read from then on.
const rollupsEvent = "rollups by a job"

// makeTablesOfRollups makes the tables of rollups and that of our jobs, and writes the configuration.
func (w *drawn) makeTablesOfRollups() (file string) {
	admin := hbase(w.T).Admin
	for _, table := range differential.RollupTables(w.table) {
		if err := admin.CreateTable(w.ctx, table, "NONE", []string{"t"}); err != nil {
			w.Fatal(err)
		}
	}
	text := differential.RollupConfig(w.table)
	w.rollups = must[*rollup.Config](w.T)(rollup.Parse([]byte(text)))
	return writeFile(w.T, "rollups.json", text)
}

// rollUp makes rollups of all days of a region's metric.
func (w *drawn) rollUp(region int) error {
	if err := lease.CreateTable(w.ctx, w.stamps, w.state); err != nil {
		return err
	}
	job := rollupjob.Job{
		Store:         w.stamps,
		Tables:        rollupjob.Tables{Data: w.table, State: w.state},
		Schema:        encoding.DefaultSchema(),
		Config:        w.rollups,
		FixDuplicates: true,
		Now:           time.Now,
		Leases:        &lease.Keeper{Store: w.stamps, Table: w.state, Holder: lease.Holder()},
	}
	metric, to := encoding.UID(bytes.Clone(w.templates[region][0][:3])), dataStart+w.nextHour[region]*3600
	_, err := job.Roll(w.ctx, metric, dataStart-7200, to)
	if err == nil {
		_, err = job.Prove(w.ctx, metric, dataStart-7200, to)
	}
	return err
}
