package changefeed

import (
	"context"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/store"
)

// Poll says how the rows of a store that cannot be watched are looked through.
// Zero values take the defaults.
type Poll struct {
	// Overlap is how far before the last point seen of the slowest live series
	// the next look at an open hour begins, in time of data. Default 10 s.
	Overlap time.Duration
	// Alive is how long a series without a new point counts as live. Default
	// 5 min.
	Alive time.Duration
	// Late is the time between two looks for late points, which may lie
	// anywhere. Default 20 s.
	Late time.Duration
	// Whole is how long reading everything may take to be the way of such a
	// look; what takes longer is looked through by time of writing. Default 1 s.
	Whole time.Duration
	// Recheck is the time between two readings of everything. Default 5 min,
	// or 20 times what it takes.
	Recheck time.Duration
}

func (p *Poll) setDefaults() {
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{{&p.Overlap, 10 * time.Second}, {&p.Alive, 5 * time.Minute}, {&p.Late, 20 * time.Second}, {&p.Whole, time.Second}, {&p.Recheck, 5 * time.Minute}} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
}

// skew is how far clocks may differ and writes may be delayed between the time
// that a cell carries and the moment when it can be read, beyond what is known of
// that; see delay.
const skew = time.Minute

// poller finds changed rows by looking, at two speeds.
//
// Each tick reads the newest cells of the open hours by a range of columns: those
// of now and later, and the one before in its first minutes. A row whose newest
// cells are others than the last time has changed; that sees points in order,
// overwritten ones near the end, and cells that a compaction took away. Rows of
// single points are kept whole, so that their changes need no reading. Appended
// columns are looked at by a scan of their own: in one scan with the other range
// they cost several times as much. Time ranges are no good for this: with one new
// cell in memory the servers walk all (5 times the cost of handing them out).
//
// Every Late it looks for late points: by making the table anew if that is cheap;
// else by the keys of the cells written since, in hours that are not open. The
// open hours' rows are read whole then. Where cells carry the time of their data
// instead of that of their writing, only the former finds them. The time since
// when is that of the last look, less a minute and less what the points in order
// show of clocks and logs that are behind. A server that has rows of closed hours
// alone, and whose clock is more than a minute behind ours, shows nothing: its late
// points are found by the next reading of everything, see Poll.Recheck.
type poller struct {
	of   *Followers
	plan *scanplan.Plan

	hours map[int64]*tailHour // by base time, s
	kept  int64               // bytes of the rows kept

	looked    time.Time // when the last look for late points began
	rechecked time.Time // when the last one that read everything began
	took      time.Duration
	rangeTook time.Duration
	stamps    stamps
	delay     delay
}

// newPoller takes down how the open hours' rows end now.
func newPoller(ctx context.Context, f *Followers, plan *scanplan.Plan, now time.Time) (*poller, error) {
	p := &poller{of: f, plan: plan, hours: map[int64]*tailHour{}, looked: now, rechecked: now}
	_, err := p.tails(ctx, now)
	p.rewind() // what comes while the table is made
	return p, err
}

func (p *poller) filled(took time.Duration) { p.took = took }
func (p *poller) close()                    {}
func (p *poller) bytes() int64              { return p.kept }

func (p *poller) find(ctx context.Context, now time.Time) (rows []store.Change, again bool, err error) {
	keys, again, err := p.changed(ctx, now)
	for _, key := range keys {
		rows = append(rows, store.Change{Row: key, Cut: true})
	}
	return rows, again, err
}

func (p *poller) changed(ctx context.Context, now time.Time) (rows [][]byte, again bool, err error) {
	since := p.looked
	late := now.Sub(since) >= p.of.cfg.Poll.Late
	if late {
		p.of.stats.late.Add(1)
		p.looked = now
		p.rewind()
		if p.everything(now) {
			p.rechecked = now
			return nil, true, nil // the next tick reads the open hours whole
		}
	}
	if rows, err = p.tails(ctx, now); err != nil || !late {
		return rows, false, err
	}
	written, err := p.since(ctx, since.Add(-skew-p.delay.known()), now)
	return append(rows, written...), false, err // in any order
}

// rewind has the next look read the rows of the open hours whole: for late
// points, and for series that live, but slowly.
func (p *poller) rewind() {
	for _, h := range p.hours {
		h.cut = 0
	}
}

// everything tells whether a look for late points is to read all rows.
func (p *poller) everything(now time.Time) bool {
	cfg := &p.of.cfg.Poll
	cheap := p.took <= cfg.Whole || p.rangeTook > p.took
	if p.stamps.ofData() && p.stamps.tell() {
		p.of.cfg.Log.Warn("live: cells carry the time of their data (tsd.storage.use_otsdb_timestamp): late points are found by reading everything again",
			"takes", p.took, "table", p.plan.Table)
	}
	return cheap || p.stamps.ofData() || now.Sub(p.rechecked) >= max(cfg.Recheck, 20*p.took)
}

// since lists the rows of hours that are not open with a cell written since.
func (p *poller) since(ctx context.Context, since, now time.Time) (keys [][]byte, err error) {
	start := time.Now()
	err = p.scan(ctx, p.plan.From, p.firstOpen(now), store.Scan{Since: since.UnixMilli(), KeysOnly: true}, func(rows []store.Row) {
		for _, r := range rows {
			keys = append(keys, append([]byte(nil), r.Key...))
		}
	})
	p.rangeTook = time.Since(start)
	return keys, err
}

// settling is how long after its end an hour is still looked at each tick.
const settling = 10 * time.Minute

// firstOpen is the base time of the first open hour.
func (p *poller) firstOpen(now time.Time) int64 {
	open := int64(encoding.BaseTime(now.Unix()))
	if now.Sub(time.Unix(open, 0)) < settling {
		open -= encoding.RowSeconds
	}
	return min(max(open, p.plan.From), p.plan.To)
}

// tails reads the newest cells of the open hours and lists the rows that end
// otherwise than the last time.
func (p *poller) tails(ctx context.Context, now time.Time) (keys [][]byte, err error) {
	first := p.firstOpen(now)
	for base, h := range p.hours {
		if base < first {
			h.drop()
			delete(p.hours, base)
		}
	}
	for base := first; base < p.plan.To; base += encoding.RowSeconds {
		h := p.hours[base]
		if h == nil {
			h = newTailHour(&p.kept, p.of.cfg.TableBytes/4)
			p.hours[base] = h
		}
		h.begin()
		err := p.scan(ctx, base, base+encoding.RowSeconds, store.Scan{Columns: h.columns()}, func(rows []store.Row) {
			for i := range rows {
				h.compareRow(&rows[i], now, base, &p.stamps, &p.delay)
			}
		})
		if err != nil {
			return nil, err
		}
		if columns := h.appended(); columns != nil {
			if err := p.scan(ctx, base, base+encoding.RowSeconds, store.Scan{Columns: columns}, func(rows []store.Row) {
				for i := range rows {
					h.compareAppended(&rows[i], now, &p.delay)
				}
			}); err != nil {
				return nil, err
			}
		}
		keys = append(keys, h.finish(now, &p.of.cfg.Poll)...)
	}
	p.delay.begin(now)
	return keys, nil
}

// read notes how rows end that were found otherwise.
func (p *poller) read(rows []store.Row) {
	for i := range rows {
		k, err := p.plan.Schema.ParseRowKey(rows[i].Key)
		if err != nil {
			continue
		}
		if h := p.hours[int64(k.BaseTime)]; h != nil {
			h.extend(&rows[i], p.looked)
		}
	}
}

// row appends the cells of a row of an open hour that is kept whole.
func (p *poller) row(key []byte, cells []store.Cell) ([]store.Cell, bool) {
	k, err := p.plan.Schema.ParseRowKey(key)
	if err != nil {
		return cells, false
	}
	h := p.hours[int64(k.BaseTime)]
	if h == nil || h.rows[string(key)] == nil || !h.rows[string(key)].whole {
		return cells, false
	}
	return asStored(cells, h.rows[string(key)].row), true
}

// scan reads the plan's rows with base times from from to to, with the fields
// that s sets beside.
func (p *poller) scan(ctx context.Context, from, to int64, s store.Scan, each func(rows []store.Row)) error {
	at := p.plan.Schema.SaltWidth + p.plan.Schema.MetricWidth
	for _, r := range p.plan.Ranges {
		part := scanplan.Part{Plan: *p.plan, Range: r}
		if from > p.plan.From {
			part.Range.Start = baseKey(r.Start[:at], from)
		}
		if to < p.plan.To {
			part.Range.Stop = baseKey(r.Start[:at], to)
		}
		if from >= to {
			continue
		}
		access := operator.ChooseAccess(&part, nil)
		if access.Nothing {
			continue
		}
		s.Table, s.Family, s.Filter = p.plan.Table, encoding.FamilyData, access.Filter
		s.Start, s.Stop = part.Range.Start, part.Range.Stop
		if err := p.drain(ctx, s, each); err != nil {
			return err
		}
	}
	return nil
}

func baseKey(head []byte, base int64) []byte {
	return append(append(make([]byte, 0, len(head)+4), head...), byte(base>>24), byte(base>>16), byte(base>>8), byte(base))
}

func (p *poller) drain(ctx context.Context, s store.Scan, each func(rows []store.Row)) error {
	for rows, err := range store.Blocks(ctx, p.of.cfg.Store, s) {
		if err != nil {
			return err
		}
		each(rows)
	}
	return nil
}
