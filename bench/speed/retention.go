package speed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"time"

	"downpour/bench/peer"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/gateway/extra/retention"
	"downpour/gateway/extra/retention/rules"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/store"
)

// embeddedRows is how many rows a second the embedded store is to delete, as ranges.
const embeddedRows = 100_000

// retaining measures how fast the rows of the older half of the hours are deleted, and what is
// left on the disk, on HBase after a major compaction and embedded. Afterwards the hours that stay
// must be answered as before, and on HBase all of them as by OpenTSDB.
func retaining(ctx context.Context, s *stage, g group) error {
	d := s.cfg.dataAt(g.scale)
	if d.Hours < 2 {
		return fmt.Errorf("hours: got %d, want 2 or more, of which half are deleted", d.Hours)
	}
	left := d
	left.Hours -= d.Hours / 2
	left.Start = d.End() - int64(left.Hours)*encoding.RowSeconds
	if err := s.retainHBase(ctx, g, d, left); err != nil {
		return fmt.Errorf("HBase: %w", err)
	}
	err := s.onRows(ctx, d, func(dir string) error { return s.retainEmbedded(ctx, g, dir, d, left) })
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	return nil
}

// retainHBase is retaining on HBase.
func (s *stage) retainHBase(ctx context.Context, g group, d, left workload.Devops) error {
	s.dropSet() // that of another row has other data
	if err := s.useLoaded(ctx, g, d, write.MultiPoint); err != nil {
		return err
	}
	o := peer.Options{Quorum: s.hbase.Quorum(), Tables: s.set.tables, Env: s.cfg.ScanEnv}
	var err error
	if s.set.ours, err = s.started(peer.StartDownpour(ctx, o)); err != nil {
		return err
	}
	if s.set.tsd, err = s.started(peer.StartOpenTSDB(ctx, o)); err != nil {
		return err
	}

	r := retained{where: "HBase, one region server", want: retention.DefaultRate}
	if r.before, err = s.set.ours.Ask(ctx, left.Whole("sum:5m-avg:%s")); err != nil {
		return err
	}
	if r.bytes[0], err = s.sizeOfSet(ctx); err != nil {
		return err
	}
	if r.took, err = retire(ctx, s.store, s.set.tables.Data, s.set.tables.UID, d, left); err != nil {
		return err
	}
	if r.after, err = s.set.ours.Ask(ctx, left.Whole("sum:5m-avg:%s")); err != nil {
		return err
	}
	if err := peer.Agree(ctx, s.set.tsd, s.set.ours, d.Whole("sum:5m-avg:%s")); err != nil {
		return err
	}
	if r.bytes[1], err = s.sizeOfSet(ctx); err != nil {
		return err
	}
	return s.retentionAims(g, &r, d, left)
}

// retainEmbedded is retaining on the embedded store in a directory. No gateway has it open while
// rows are deleted.
func (s *stage) retainEmbedded(ctx context.Context, g group, dir string, d, left workload.Devops) error {
	r := retained{where: "embedded", want: embeddedRows}
	ask := func() ([]byte, error) {
		ours, err := s.started(peer.StartDownpour(ctx, peer.Options{Dir: dir, Env: s.cfg.ScanEnv}))
		if err != nil {
			return nil, err
		}
		defer ours.Close()
		return ours.Ask(ctx, left.Whole("sum:5m-avg:%s"))
	}
	var err error
	if r.before, err = ask(); err != nil {
		return err
	}
	if r.bytes[0], err = treeBytes(filepath.Join(dir, "data")); err != nil {
		return err
	}
	if err := s.onStore(directory{dir}.store(), func(st store.Store) (err error) {
		r.took, err = retire(ctx, st, "tsdb", "tsdb-uid", d, left)
		return err
	}); err != nil {
		return err
	}
	if r.after, err = ask(); err != nil {
		return err
	}
	if r.bytes[1], err = treeBytes(filepath.Join(dir, "data")); err != nil {
		return err
	}
	return s.retentionAims(g, &r, d, left)
}

// onStore opens a store for as long as do runs.
func (s *stage) onStore(address string, do func(st store.Store) error) error {
	st, err := s.cfg.Open(address)
	if err != nil {
		return err
	}
	return errors.Join(do(st), st.Close())
}

// retire deletes the rows of a data set that are older than what is left of it, as fast as it goes.
func retire(ctx context.Context, st store.Store, data, uids string, d, left workload.Devops) (time.Duration, error) {
	schema := encoding.DefaultSchema()
	names := uid.New(uid.Config{Store: st, Table: uids, Schema: schema})
	job := retention.Job{Store: st, Schema: schema, Tables: []retention.Table{{Name: data, Span: rules.Hour}},
		Rules: rules.All(rules.Age(left.Hours) * encoding.RowSeconds),
		Names: func(ctx context.Context) iter.Seq2[uid.Entry, error] { return names.Each(ctx, encoding.UIDMetric, "") },
		Now:   func() time.Time { return time.Unix(d.End(), 0) }}
	want := rowsIn(d) - rowsIn(left)
	began := time.Now()
	done, err := job.Run(ctx, 0, want)
	if err != nil {
		return 0, err
	}
	took := time.Since(began)
	if done.Deleted != want {
		return 0, fmt.Errorf("got %v, want %d rows deleted", done, want)
	}
	return took, nil
}

// retained is what was found on one store.
type retained struct {
	where         string
	want          float64 // rows a second
	before, after []byte  // answers about what stays
	took          time.Duration
	bytes         [2]int64 // on the disk, before and after
}

// retentionAims checks the answers and adds figures and aims to the report.
func (s *stage) retentionAims(g group, r *retained, d, left workload.Devops) error {
	if !bytes.Equal(r.before, r.after) {
		return errors.New("sum:5m-avg over the hours that stay has another answer after the others are deleted than before")
	}
	f := report.Figure{Name: "retention, " + r.where, Work: rowsIn(d) - rowsIn(left), Unit: "rows", Runs: []time.Duration{r.took}}
	s.cfg.Report.Figures = append(s.cfg.Report.Figures, f)
	s.aim(report.Aim{Row: "retention", Scale: g.scale, What: "rows deleted, " + r.where, AtLeast: true, Want: r.want, Unit: "rows/s", Figure: f.Name,
		Got: report.Ratio{Median: f.Rate()}})
	// What belongs to no row takes some room, too.
	share := float64(left.Hours) / float64(d.Hours)
	s.aim(report.Aim{Row: "retention", Scale: g.scale, What: fmt.Sprintf("bytes on disk after %d of %d hours are deleted", d.Hours-left.Hours, d.Hours),
		Against: "before, " + r.where, Want: share + 0.05, Got: single(float64(r.bytes[1]) / float64(r.bytes[0])),
		Ours: fmt.Sprintf("%.1f MB", float64(r.bytes[1])/1e6), Theirs: fmt.Sprintf("%.1f MB", float64(r.bytes[0])/1e6)})
	return nil
}
