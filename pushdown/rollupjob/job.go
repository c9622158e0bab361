package rollupjob

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/pushdown/lease"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/rollup"
	"downpour/pushdown/store"
)

// Job makes rollups. Its fields are set before it is used.
type Job struct {
	Store  store.Cells
	Tables Tables
	Schema encoding.Schema
	Config *rollup.Config
	// FixDuplicates is that of the queries, see encoding.RowDecoder.
	FixDuplicates bool
	// Margin is the time from an hour's end until it is sealed.
	Margin time.Duration
	Now    func() time.Time
	// Leases takes the lease of each metric; nil takes none.
	Leases *lease.Keeper
	// Skip ends with ErrHeld for a metric whose lease somebody else has, instead of waiting for it.
	Skip bool
	// Grain, in s: rolling up ends at a multiple of it; 0 rolls up each sealed hour. It bounds the
	// number of pieces of a day.
	Grain int64
	// Pace, if set, is called now and then with the amount read since, in raw points; other reads
	// are counted as points of equal cost. It may wait.
	Pace func(ctx context.Context, points int64) error
	// Fewer also replaces or deletes values that were made of more points than the raw rows have
	// now, as after a deletion. Otherwise they are kept, see permitted.
	Fewer bool
	// Reached, if set, is called with the progress, after each day and salt bucket.
	Reached func(done Counts)
}

// DefaultMargin is longer than most points come late.
const DefaultMargin = 10 * time.Minute

// Counts is what a job has done.
type Counts struct {
	Points int64 `json:"points"` // raw points read
	Rows   int64 `json:"rows"`   // raw rows read
	Made   int64 `json:"made"`   // pieces rolled up: about a day of a metric, interval and salt bucket each
	Kept   int64 `json:"kept"`   // pieces whose raw rows have not changed since
	Cells  int64 `json:"cells"`  // rollup cells written or deleted
	Stay   int64 `json:"stay"`   // rollup cells that are not, because they are of more points than the raw rows have
	Raw    int64 `json:"raw"`    // pieces that queries still read from raw rows
	Failed int64 `json:"failed"` // pieces whose raw rows cannot be read
	// Proven are pieces that queries read from rollups from now on, and Unproven the others. Why is
	// the reason for one of the latter.
	Proven   int64  `json:"proven"`
	Unproven int64  `json:"unproven"`
	Why      string `json:"why,omitempty"`
}

// Add adds other counts.
func (c *Counts) Add(o *Counts) {
	c.Points += o.Points
	c.Rows += o.Rows
	c.Made += o.Made
	c.Kept += o.Kept
	c.Cells += o.Cells
	c.Stay += o.Stay
	c.Raw += o.Raw
	c.Failed += o.Failed
	c.Proven += o.Proven
	c.Unproven += o.Unproven
	if o.Why != "" {
		c.Why = o.Why
	}
}

// String is the counts in words.
func (c *Counts) String() string {
	s := fmt.Sprintf("%d points in %d rows read; %d days rolled up, %d unchanged since; %d cells written", c.Points,
		c.Rows, c.Made, c.Kept, c.Cells)
	if c.Stay > 0 {
		s += fmt.Sprintf(
			"; %d stay that were made of more points than the raw rows have now "+
				"(-fewer replaces them; not where raw rows went by their age)",
			c.Stay)
	}
	if c.Raw > 0 {
		s += fmt.Sprintf("; %d days hold what rollups cannot say", c.Raw)
	}
	if c.Failed > 0 {
		s += fmt.Sprintf("; %d days cannot be read", c.Failed)
	}
	if c.Proven+c.Unproven > 0 {
		s += fmt.Sprintf("; proven: %d of %d", c.Proven, c.Proven+c.Unproven)
	}
	if c.Why != "" {
		s += ": " + c.Why
	}
	return s
}

// errRecord is returned when another worker has changed a record since it was read.
var errRecord = errors.New("another worker has changed the records of the rollups in the meantime; run it again")

// ErrHeld is returned for a metric that Job.Skip passes over, because somebody else has its lease.
var ErrHeld = errors.New("somebody else rolls the metric up")

// Roll rolls up the sealed hours of a metric between two times, in s, widened to whole days:
// those not yet rolled up, or whose raw rows are not proven to be unchanged. After an error
// it can be run again, and continues.
func (j *Job) Roll(ctx context.Context, metric encoding.UID, from, to int64) (counts Counts, err error) {
	err = j.locked(ctx, metric, func(ctx context.Context) error {
		return j.each(metric, func(w *work) error {
			w.Range = w.sealed(from, to)
			if w.empty() {
				return nil
			}
			err := w.roll(ctx)
			counts.Add(&w.counts)
			return err
		})
	})
	return counts, err
}

// Prove reads back what Roll has written between two times, and marks it, so that queries
// read it. It comes after all metrics were rolled up: on HBase a proof needs a region
// without writes, so writing the rollups of one metric would break the proof of another.
func (j *Job) Prove(ctx context.Context, metric encoding.UID, from, to int64) (counts Counts, err error) {
	err = j.locked(ctx, metric, func(ctx context.Context) error {
		return j.each(metric, func(w *work) error {
			w.Range = w.sealed(from, to)
			if w.empty() {
				return nil
			}
			err := w.prove(ctx)
			counts.Add(&w.counts)
			return err
		})
	})
	return counts, err
}

// locked does something while this process has the lease of a metric.
func (j *Job) locked(ctx context.Context, metric encoding.UID, do func(ctx context.Context) error) error {
	if j.Leases == nil {
		return do(ctx)
	}
	name := recordPrefix + j.Tables.Data + "/" + hex.EncodeToString(metric)
	if !j.Skip {
		return j.Leases.Do(ctx, name, func(ctx context.Context, _ *lease.Lease) error { return do(ctx) })
	}
	l, ok, err := j.Leases.Try(ctx, name)
	if err != nil {
		return err
	}
	if !ok {
		return ErrHeld
	}
	return l.Do(ctx, do)
}

// work is what a job does with one interval and salt bucket of a metric.
type work struct {
	*Job
	*layout
	Range  // what is rolled up
	marker store.Marker
	metric encoding.UID
	bucket int
	counts Counts
}

// each calls f for each interval and salt bucket of a metric.
func (j *Job) each(metric encoding.UID, f func(w *work) error) error {
	intervals, err := j.Config.ComputedIntervals()
	if err != nil {
		return err
	}
	marker := j.Store.Features().Marker
	for _, i := range intervals {
		l := newLayout(j.Schema, j.Tables, j.Config, i, j.FixDuplicates)
		for bucket := range j.Schema.Buckets() {
			w := &work{Job: j, layout: l, marker: marker, metric: metric, bucket: bucket}
			if err := f(w); err != nil {
				return fmt.Errorf("interval %s, salt bucket %d: %w", i.Name, bucket, err)
			}
			if j.Reached != nil {
				j.Reached(w.counts)
			}
		}
	}
	return nil
}

// sealed returns the sealed time between two times: from the start of a piece to the end of
// one, or to that of the last sealed step.
func (w *work) sealed(from, to int64) Range {
	sealed := w.Now().Add(-w.Margin).Unix()
	sealed -= sealed % w.grain(w.Grain)
	p := w.piece()
	return Range{max(from, 0) / p * p, min((to+p-1)/p*p, sealed)}
}

// rawMark returns the beginning of a section: the mark of the raw rows of a time, or why they
// have none.
func (w *work) rawMark(ctx context.Context, r Range) section {
	s := section{Settings: w.settings, Why: noMarks}
	if w.marker == nil {
		return s
	}
	mark, err := w.marker.Mark(ctx, w.Tables.Data, encoding.FamilyData, w.rawKeys(w.bucket, w.metric, r))
	if s.Raw, s.Resting, s.Why = mark.Text, mark.Resting, ""; err != nil {
		s.Raw, s.Why = "", err.Error()
	}
	return s
}

// noMarks is why nothing is proven on a store that is no store.Marker.
const noMarks = "the store makes no marks"

// roll rolls up what is not yet rolled up, or has changed since.
func (w *work) roll(ctx context.Context) error {
	if err := w.pace(ctx, recordCost); err != nil {
		return err
	}
	rec, err := w.read(ctx, w.Range)
	if err != nil {
		return err
	}
	w.To = max(w.To, rec.endOfPiece(w.To))
	var done []piece
	for i := range rec.Sections {
		kept, _ := w.unchangedOf(ctx, &rec.Sections[i], w.Range)
		if w.Fewer {
			kept = slices.DeleteFunc(kept, func(p piece) bool { return p.ReadRaw == valuesStay })
		}
		done = append(done, kept...)
	}
	w.counts.Kept += int64(len(done))

	missing := w.missing(done)
	if len(missing) == 0 {
		return nil
	}
	// The mark comes before any raw row is read.
	mark := w.rawMark(ctx, Range{missing[0].From, missing[len(missing)-1].To})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// The newest first, because they are queried most.
	slices.Reverse(missing)
	for part := range slices.Chunk(missing, savedAtOnce) {
		if err := w.rollPart(ctx, rec, mark, part); err != nil {
			return err
		}
	}
	return nil
}

const (
	// savedAtOnce bounds the times that are rolled up before they are recorded: a record is
	// written as a whole. Work that a killed process had not recorded is repeated.
	savedAtOnce = 32
	// saveTimeout bounds how long an ended job may take to record its work.
	saveTimeout = 5 * time.Second
)

// rollPart rolls up times, the newest first, and records them with the mark. It also
// records those done before an error.
func (w *work) rollPart(ctx context.Context, rec *records, mark section, times []Range) error {
	var done []Range
	var made []piece
	var failed error
	for _, r := range times {
		pieces, err := w.rollUp(ctx, r)
		if failed = err; err != nil {
			break
		}
		done, made = append(done, r), append(made, pieces...)
	}
	if len(done) == 0 {
		return failed
	}

	saving, cancel := ctx, context.CancelFunc(func() {})
	if failed != nil {
		saving, cancel = context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	}
	defer cancel()
	slices.SortFunc(made, func(a, b piece) int { return cmp.Compare(a.From, b.From) })
	// If nothing was made, old cells must go.
	return errors.Join(failed, w.save(saving, rec, done, runs(mark, made)...))
}

// read returns what is recorded of a time.
func (w *work) read(ctx context.Context, r Range) (*records, error) {
	all, err := readRecords(ctx, w.Store, w.Tables, w.layout, w.metric, []int{w.bucket}, r)
	if err != nil {
		return nil, err
	}
	return &all[0], nil
}

// The cost of checking a record and its marks, and of a raw row in addition to its points, in
// points.
const (
	recordCost = 500
	rowCost    = 8
)

// pace reports reads to Pace.
func (w *work) pace(ctx context.Context, points int64) error {
	if w.Pace == nil {
		return nil
	}
	return w.Pace(ctx, points)
}

// unchangedOf returns the pieces of a section inside a time whose raw rows have not changed since
// they were rolled up, and why others are excluded.
func (w *work) unchangedOf(ctx context.Context, s *section, r Range) (kept []piece, why error) {
	if s.Settings != w.settings {
		return nil, errors.New("they were rolled up with other settings")
	}
	if s.Raw == "" || w.marker == nil {
		return nil, errors.New(s.Why)
	}
	inside := slices.DeleteFunc(slices.Clone(s.Pieces),
		func(p piece) bool { return p.times().intersect(r) != p.times() })
	return unchangedPieces(ctx, inside, maxChecks, func(ctx context.Context, r Range) error {
		return w.marker.Unchanged(ctx, w.Tables.Data, encoding.FamilyData, w.rawKeys(w.bucket, w.metric, r), s.Raw)
	})
}

// missing returns the times that ascending pieces do not have, cut at the ends of days.
func (w *work) missing(done []piece) (out []Range) {
	at := w.From
	add := func(to int64) {
		for at < to {
			end := min(at/w.piece()*w.piece()+w.piece(), to)
			out = append(out, Range{at, end})
			at = end
		}
	}
	for _, p := range done {
		add(p.From)
		at = p.To
	}
	add(w.To)
	return out
}

// rollUp reads the raw rows of a time and writes their rollups. It returns what it has
// rolled up: nothing of a time with rows that cannot be read.
func (w *work) rollUp(ctx context.Context, r Range) ([]piece, error) {
	u := newUnit(ctx, w.layout, r, w.FixDuplicates)
	defer u.held.Close()
	err := u.read(ctx, w.Store, w.Tables.Data, w.rawKeys(w.bucket, w.metric, r), w.pace)
	var damage *damageError
	var limit *memory.LimitError
	tooMany := errors.Is(err, errTooMany) || errors.As(err, &limit)
	switch {
	case tooMany && r.To-r.From > w.step():
		u.held.Close() // the halves reserve it again
		middle := r.From + (r.To-r.From)/w.step()/2*w.step()
		first, err := w.rollUp(ctx, Range{r.From, middle})
		if err != nil {
			return nil, err
		}
		second, err := w.rollUp(ctx, Range{middle, r.To})
		return append(first, second...), err
	case errors.As(err, &damage), tooMany:
		w.counts.Failed++
		w.counts.Why = err.Error()
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read raw rows: %w", err)
	}

	rows := u.make(w.bucket, w.metric)
	changes, err := w.changes(ctx, w.Store, w.rolledKeys(w.bucket, w.metric, r), r, rows)
	if err != nil {
		return nil, fmt.Errorf("cannot read rollups of table %s: %w", w.table, err)
	}
	pointCounts, values, stay := permitted(changes, w.Fewer)
	for _, some := range [][]store.Mutation{pointCounts, values} {
		if err := write(ctx, w.Store, w.table, some); err != nil {
			return nil, fmt.Errorf("cannot write rollups to table %s: %w", w.table, err)
		}
	}
	w.counts.Points += u.points
	w.counts.Rows += u.rows
	w.counts.Cells += int64(len(pointCounts) + len(values))
	w.counts.Stay += stay
	w.counts.Made++
	whyRaw := u.readRaw // why queries are to read raw rows in this range; empty if rollups will do
	if stay > 0 {
		whyRaw = valuesStay
	}
	if whyRaw != "" {
		w.counts.Raw++
	}
	return []piece{{From: r.From, To: r.To, Digest: digestOf(rows), ReadRaw: whyRaw}}, nil
}

// save replaces the records of some times by sections.
func (w *work) save(ctx context.Context, r *records, within []Range, with ...section) error {
	r.replace(within, with...)
	return r.save(ctx, w.Store, w.Tables, w.layout, w.metric, w.bucket)
}
