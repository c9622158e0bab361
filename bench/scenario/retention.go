package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"time"

	"downpour/bench/peer"
	"downpour/bench/place"
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
func retaining(ctx context.Context, s *stage) error {
	d := s.cfg.dataAt(s.group.scale)
	if d.Hours < 2 {
		return fmt.Errorf("hours: got %d, want 2 or more, of which half are deleted", d.Hours)
	}
	left := d
	left.Hours -= d.Hours / 2
	left.Start = d.End() - int64(left.Hours)*encoding.RowSeconds
	if err := s.retainHBase(ctx, d, left); err != nil {
		return fmt.Errorf("HBase: %w", err)
	}
	err := s.onRows(ctx, d, func(at *place.Place) error { return s.retainEmbedded(ctx, at, d, left) })
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	return nil
}

// retainHBase is retaining on HBase.
func (s *stage) retainHBase(ctx context.Context, d, left workload.Devops) error {
	at, err := s.maker.OnHBase(ctx, nil)
	defer at.Drop()
	if err != nil {
		return err
	}
	s.cfg.Progress.Sayf("loading %s", d)
	if _, err := s.load(ctx, at, d, write.MultiPoint); err != nil {
		return err
	}
	r := retained{
		where: "HBase, one region server", want: retention.DefaultRate,
		size: func() (int64, error) { return s.tableBytes(at) },
		retire: func() (time.Duration, error) {
			return retire(ctx, at.Store(), at.Tables.Data, at.Tables.UID, d, left)
		},
		rest: at.Compact,
	}
	if err := s.retain(ctx, at, r, d, left); err != nil {
		return err
	}
	server, err := s.sideAt(ctx, at, ours)
	if err != nil {
		return err
	}
	theirs, err := s.sideAt(ctx, at, tsd)
	if err != nil {
		return err
	}
	return peer.Agree(ctx, theirs, server, d.Whole(sum))
}

// retainEmbedded is retaining on the embedded store. No gateway has it open while rows are deleted.
func (s *stage) retainEmbedded(ctx context.Context, at *place.Place, d, left workload.Devops) error {
	return s.retain(ctx, at, retained{
		where: "embedded", want: embeddedRows,
		size: func() (int64, error) { return treeBytes(filepath.Join(at.Dir, "data")) },
		retire: func() (took time.Duration, err error) {
			err = s.opened(at, func(st store.Store) (err error) {
				took, err = retire(ctx, st, "tsdb", "tsdb-uid", d, left)
				return err
			})
			return took, err
		},
		rest: func(context.Context) error { return nil },
	}, d, left)
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

// retained is how rows are deleted on one store.
type retained struct {
	where  string
	want   float64 // rows a second
	size   func() (int64, error)
	retire func() (time.Duration, error)
	rest   func(context.Context) error // lets the files come to rest
}

// retain deletes, compares what is answered before and afterwards about the hours that stay, and adds figures and aims
// to the report.
func (s *stage) retain(ctx context.Context, at *place.Place, r retained, d, left workload.Devops) error {
	look := func() (answer []byte, size int64, err error) {
		server, err := s.sideAt(ctx, at, ours)
		if err != nil {
			return nil, 0, err
		}
		if answer, err = server.Ask(ctx, left.Whole(sum)); err != nil {
			return nil, 0, err
		}
		if err := errors.Join(at.Stop(), r.rest(ctx)); err != nil {
			return nil, 0, err
		}
		size, err = r.size()
		return answer, size, err
	}

	answer, before, err := look()
	if err != nil {
		return err
	}
	took, err := r.retire()
	if err != nil {
		return err
	}
	again, after, err := look()
	if err != nil {
		return err
	}
	if !bytes.Equal(answer, again) {
		return errors.New(
			"sum:5m-avg over the hours that stay has another answer after the others are deleted than before",
		)
	}

	f := report.Figure{
		Name: "retention, " + r.where, Work: rowsIn(d) - rowsIn(left), Unit: "rows", Runs: []time.Duration{took},
	}
	s.cfg.Report.Figures = append(s.cfg.Report.Figures, f)
	s.judge(rated("retention", r.want), "rows deleted, "+r.where, f, f)
	// What belongs to no row takes some room, too.
	share := float64(left.Hours) / float64(d.Hours)
	what := fmt.Sprintf("bytes on disk after %d of %d hours are deleted", d.Hours-left.Hours, d.Hours)
	inMB := func(bytes float64) string { return fmt.Sprintf("%.1f MB", bytes/1e6) }
	s.cfg.add(s.amounts("retention", what, "before, "+r.where, share+0.05, float64(after), float64(before), inMB))
	return nil
}
