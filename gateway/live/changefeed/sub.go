package changefeed

import (
	"context"
	"errors"
	"time"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/gateway/live"
	"downpour/gateway/live/incremental"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/merge"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// sub is one sub-query.
type sub struct {
	source *source
	of     *Followers

	as    *engine.Prepared // what the table was made for
	table *incremental.Table
	find  finder
	large bool            // the table of this plan was too large
	rows  int64           // what the store delivered for the last whole answer
	ctx   context.Context // of the present tick

	reread map[string]struct{} // rows that are read whenever they change

	cells   []store.Cell // scratch, as the rest
	span    []byte
	points  encoding.Points
	decoder encoding.RowDecoder
}

// finder tells which rows of a plan have changed, and how if it knows; again
// tells that any may have, and that the table is to be made anew.
type finder interface {
	find(ctx context.Context, now time.Time) (rows []store.Change, again bool, err error)
	// read is told of the rows that were read because of find, filled how long
	// it took to make the table.
	read(rows []store.Row)
	// row appends the cells of a row that the finder knows as it is now, and
	// that need not be read; they are views until the next find.
	row(key []byte, cells []store.Cell) ([]store.Cell, bool)
	bytes() int64 // held by the finder
	filled(took time.Duration)
	close()
}

func (s *sub) close() {
	if s.find != nil {
		s.find.close()
	}
	s.find, s.table, s.reread = nil, nil, nil
}

func (s *sub) bytes() int64 {
	if s.table == nil {
		return 0
	}
	return s.table.Bytes() + s.find.bytes()
}

// next adds to the answer what is new of the sub-query, or all of it.
func (s *sub) next(ctx context.Context, p *engine.Prepared, now time.Time, a *live.Answer) error {
	if s.as == nil || !s.as.Same(p) {
		s.close()
		s.large = false
	}
	s.as, s.ctx = p, ctx
	if s.table != nil {
		err := s.tick(ctx, now, a)
		if err == nil {
			return nil
		}
		s.of.cfg.Log.Debug("live: a standing answer is made anew", "reason", err)
		s.close()
		if ctx.Err() != nil || errors.Is(err, dispatch.ErrUnreachable) {
			return err
		}
	}
	if s.whole(p) {
		return s.ask(ctx, a)
	}
	err := s.load(ctx, now, a)
	var limit *incremental.LimitError
	var large *memory.LimitError
	if errors.As(err, &limit) || errors.As(err, &large) {
		s.large = true
	}
	if err != nil {
		// Whatever it was: the whole way decides what the client is told.
		s.close()
		if ctx.Err() != nil {
			return err
		}
		return s.ask(ctx, a)
	}
	return nil
}

// whole tells whether the sub-query is to be asked whole.
func (s *sub) whole(p *engine.Prepared) bool {
	return s.large || p.Empty() || incremental.Covers(p.Plan) != ""
}

func (s *sub) ask(ctx context.Context, a *live.Answer) error {
	s.of.stats.whole.Add(1)
	results, stats, err := s.as.Run(ctx)
	if err != nil {
		return err
	}
	s.rows = stats.Rows
	a.Results = append(a.Results, liveResults(results)...)
	return nil
}

func liveResults(results []engine.Result) []live.Result {
	out := make([]live.Result, len(results))
	for i := range results {
		out[i] = liveResult(&results[i])
	}
	return out
}

// groupKey is never empty, for what has no key would be known by its tags.
func groupKey(key []byte) string { return "\x00" + string(key) }

func liveResult(r *engine.Result) live.Result {
	tags := make(map[string]string, len(r.Tags))
	for _, t := range r.Tags {
		tags[t.K] = t.V
	}
	return live.Result{QueryIndex: r.Query, Metric: r.Metric, Tags: tags, AggregateTags: r.AggregateTags,
		Key: groupKey([]byte(r.Key)), Points: r.Points, NaNIsNull: r.NaNIsNull}
}

func (s *sub) shown() incremental.Window {
	return incremental.Window{From: s.as.Plan.Start, To: s.as.Plan.End}
}

// load makes the table. What changes from before it reads on is found by the
// finder, which is opened first.
func (s *sub) load(ctx context.Context, now time.Time, a *live.Answer) (err error) {
	s.of.stats.loads.Add(1)
	if s.find, err = s.newFinder(ctx, now); err != nil {
		return err
	}
	if s.table, err = s.fill(ctx); err != nil {
		return err
	}
	return s.all(ctx, a)
}

func (s *sub) fill(ctx context.Context) (*incremental.Table, error) {
	start := time.Now()
	t, err := incremental.New(s.as.Plan, s.keep(), incremental.Bounds{Bytes: s.of.cfg.TableBytes, Guard: memory.NewLease(ctx)})
	if err != nil {
		return nil, err
	}
	load := t.Load()
	stats, err := s.as.Execute(ctx, func(part scanplan.KeyRange, records []batch.Record) error { return load.Add(part, records) })
	if err != nil {
		return nil, err
	}
	if err := load.Finish(); err != nil {
		return nil, err
	}
	s.rows = stats.Rows
	s.find.filled(time.Since(start))
	return t, nil
}

// keep asks the filter on names in the tick that meets a new span.
func (s *sub) keep() func(span []byte) (bool, error) {
	if s.as.PostFilter == nil {
		return nil
	}
	return func(span []byte) (bool, error) { return s.as.Keep(s.ctx)(span) }
}

// all adds all groups to the answer.
func (s *sub) all(ctx context.Context, a *live.Answer) error {
	groups, err := s.table.Groups(s.shown())
	if err != nil {
		return err
	}
	results, err := s.as.Named(ctx, groups)
	if err != nil {
		return err
	}
	a.Results = append(a.Results, liveResults(results)...)
	return nil
}

// tick adds what is new to the answer.
func (s *sub) tick(ctx context.Context, now time.Time, a *live.Answer) error {
	s.table.Within(memory.NewLease(ctx))
	rows, again, err := s.find.find(ctx, now)
	if err != nil {
		return err
	}
	if again {
		s.table = nil // two of them need not fit
		if s.table, err = s.fill(ctx); err != nil {
			return err
		}
		return s.all(ctx, a)
	}
	s.of.stats.changed.Add(int64(len(rows)))
	if err := s.apply(ctx, rows); err != nil {
		return err
	}
	changes, err := s.table.Changes(s.shown())
	if err != nil {
		return err
	}
	if s.bytes() > s.of.cfg.TableBytes {
		s.large = true
		return errWhole
	}
	named, err := s.named(ctx, changes)
	if err != nil {
		return err
	}
	a.Kept[s.as.Index()] = true
	a.Changes = append(a.Changes, named...)
	return nil
}

// apply changes the table by what has become of rows.
func (s *sub) apply(ctx context.Context, rows []store.Change) error {
	read, err := s.extend(rows)
	if err != nil || len(read) == 0 {
		return err
	}
	return s.replace(ctx, read)
}

// named gives changes their names.
func (s *sub) named(ctx context.Context, changes []incremental.Change) (all []live.Change, err error) {
	var anew []merge.Group
	for i := range changes {
		c := &changes[i]
		if c.Anew {
			anew = append(anew, c.Group)
			continue
		}
		out := live.Change{QueryIndex: s.as.Index(), Key: groupKey(c.Group.Key)}
		for _, w := range c.Windows {
			out.Windows = append(out.Windows, live.Window{From: w.From, To: w.To, Points: w.Points})
		}
		all = append(all, out)
	}
	if len(anew) == 0 {
		return all, nil
	}
	results, err := s.as.Named(ctx, anew)
	if err != nil {
		return nil, err
	}
	for i := range results {
		r := liveResult(&results[i])
		all = append(all, live.Change{QueryIndex: r.QueryIndex, Key: r.Key, Anew: &r})
	}
	return all, nil
}
