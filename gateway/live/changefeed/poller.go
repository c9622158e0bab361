package changefeed

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/live"
	"downpour/pushdown/operator"
	"downpour/pushdown/store"
)

// Poll is how the rows of a store that cannot be watched are scanned for changes. Zero values mean
// the defaults.
type Poll struct {
	// Overlap is how far, in time of data, the next scan of an open hour begins
	// before the last point seen of the slowest live series. Default 10 s.
	Overlap time.Duration
	// Alive is how long a series without a new point counts as live. Default
	// 5 min.
	Alive time.Duration
	// Late is the time between two scans for late points, which may be anywhere.
	// Default 20 s.
	Late time.Duration
	// CheapLoad is the longest time of loading the whole view for which that is used to find late
	// points. If it takes longer, they are found by time of writing. Default 1 s.
	CheapLoad time.Duration
	// Recheck is the time after which the whole view is loaded in any case.
	// Default 5 min, or 20 times what loading takes.
	Recheck time.Duration
}

func (p *Poll) setDefaults() {
	live.SetDefault(&p.Overlap, 10*time.Second)
	live.SetDefault(&p.Alive, 5*time.Minute)
	live.SetDefault(&p.Late, 20*time.Second)
	live.SetDefault(&p.CheapLoad, time.Second)
	live.SetDefault(&p.Recheck, 5*time.Minute)
}

// clockSkew is how far clocks may differ and writes may be delayed between the time
// that a cell carries and the moment when it can be read, beyond what is measured
// (see delay).
const clockSkew = time.Minute

// poller finds changed rows of a store that cannot be watched. It scans at two
// speeds.
//
// Each tick scans the newest cells of the open hours by a range of columns. The open
// hours are the current one and later ones, and for some minutes the one before. A row
// whose newest cells differ from the last scan has changed. That finds points in order,
// overwritten points near the end, and cells that a compaction took away. Rows of
// single points are kept whole, so that their changes need no reading. Append columns
// are scanned separately, because both ranges in one scan cost several times as much. A
// time range would not help: with one new cell in memory the region servers walk all
// cells, at 5 times the cost of returning them.
//
// Every Poll.Late it scans for late points. If that is cheap, the whole view is loaded again.
// Otherwise the open hours' rows are read whole, and in all other hours the keys of cells written
// since the last such scan. If cells carry the time of their data instead of that of their writing,
// only loading finds them.
//
// "Since" is the start of the last scan for late points, less a minute and less
// the delay that points in order show of clocks and logs that are behind. A region
// server that has rows of closed hours only, and whose clock is more than a minute
// behind ours, shows no delay: its late points are found by the next loading, see
// Poll.Recheck.
type poller struct {
	feed *Feed
	plan *scanplan.Plan

	hours     map[int64]*hourTails // open hours by base time (s)
	keptBytes int64                // of the rows kept

	lateScan   time.Time     // when the last scan for late points began
	rechecked  time.Time     // when the last one that loaded the view began
	loadTook   time.Duration // to load the whole view
	rangeTook  time.Duration // to scan by time of writing
	timestamps timestamps
	delay      delay
}

// newPoller returns a poller that knows the present end of the open hours' rows.
func newPoller(ctx context.Context, f *Feed, plan *scanplan.Plan, now time.Time) (*poller, error) {
	p := &poller{feed: f, plan: plan, hours: map[int64]*hourTails{}, lateScan: now, rechecked: now}
	// Which rows have changed does not matter: the view is loaded after this.
	_, err := p.scanTails(ctx, now)
	p.rewind() // for late points that come while the view is loaded
	return p, err
}

func (p *poller) viewLoaded(took time.Duration) { p.loadTook = took }
func (p *poller) close()                        {}
func (p *poller) knowsWrites() bool             { return false } // it compares keys and qualifiers
func (p *poller) bytes() int64                  { return p.keptBytes }

// find returns the changed rows; their writes are unknown.
func (p *poller) find(ctx context.Context, now time.Time) (rows []store.Change, reload bool, err error) {
	keys, reload, err := p.changedKeys(ctx, now)
	for _, key := range keys {
		rows = append(rows, store.Change{Row: key, Cut: true})
	}
	return rows, reload, err
}

// changedKeys returns the keys of rows that have changed, in any order.
func (p *poller) changedKeys(ctx context.Context, now time.Time) (keys [][]byte, reload bool, err error) {
	since := p.lateScan
	late := now.Sub(since) >= p.feed.cfg.Poll.Late
	if late {
		p.feed.stats.late.Add(1)
		p.lateScan = now
		p.rewind() //fault:late-point-in-a-kept-row TestPoller_late
		if p.mustReload(now) {
			p.rechecked = now
			return nil, true, nil // the next tick scans the open hours whole
		}
	}

	if keys, err = p.scanTails(ctx, now); err != nil || !late {
		return keys, false, err
	}
	// Of closed hours only: scanTails has read the open ones whole, after rewind. A cell may become
	// readable later than its timestamp, so the scan begins earlier.
	written, err := p.writtenSince(ctx, since.Add(-clockSkew-p.delay.longest()), now)
	return append(keys, written...), false, err
}

// rewind makes the next scan read the rows of the open hours whole: for late points, and for live
// series that are slower than the cut assumes.
func (p *poller) rewind() {
	for _, h := range p.hours {
		h.cut = 0
	}
}

// mustReload reports whether a scan for late points must load the whole view.
func (p *poller) mustReload(now time.Time) bool {
	cfg := &p.feed.cfg.Poll
	// Loading is also cheap if the scan by time of writing has taken even longer.
	cheap := p.loadTook <= cfg.CheapLoad || p.rangeTook > p.loadTook

	if p.timestamps.areDataTime() && p.timestamps.firstReport() {
		p.feed.cfg.Log.Warn(
			"live: cells carry the time of their data (tsd.storage.use_otsdb_timestamp): "+
				"late points are found by reading everything again",
			"takes", p.loadTook, "table", p.plan.Table)
	}
	// A long load must not take more than a twentieth of the time.
	return cheap || p.timestamps.areDataTime() || now.Sub(p.rechecked) >= max(cfg.Recheck, 20*p.loadTook)
}

// writtenSince returns the keys of rows of closed hours that have a cell written
// since a time.
func (p *poller) writtenSince(ctx context.Context, since, now time.Time) (keys [][]byte, err error) {
	start := time.Now()
	err = p.scan(ctx, p.plan.From, p.firstOpen(now), store.Scan{Since: since.UnixMilli(), KeysOnly: true},
		func(rows []store.Row) {
			for _, r := range rows {
				keys = append(keys, append([]byte(nil), r.Key...))
			}
		})
	p.rangeTook = time.Since(start) // mustReload compares it with the time of loading
	return keys, err
}

// openAfterEnd is how long an hour stays open after its end.
const openAfterEnd = 10 * time.Minute

// firstOpen returns the base time of the first open hour.
func (p *poller) firstOpen(now time.Time) int64 {
	open := encoding.Hour(now.Unix())
	if now.Sub(time.Unix(open, 0)) < openAfterEnd {
		open -= encoding.RowSeconds
	}
	// A plan that ends before now may have no open hour: then there are no rows from here to
	// plan.To.
	return min(max(open, p.plan.From), p.plan.To)
}

// scanTails scans the newest cells of the open hours and returns the keys of the
// rows that end otherwise than at the last scan.
func (p *poller) scanTails(ctx context.Context, now time.Time) (keys [][]byte, err error) {
	first := p.firstOpen(now)
	for base, h := range p.hours {
		if base < first { // from now on left to the scans for late points
			h.close()
			delete(p.hours, base)
		}
	}

	for base := first; base < p.plan.To; base += encoding.RowSeconds {
		changed, err := p.scanHour(ctx, base, now)
		if err != nil {
			return nil, err
		}
		keys = append(keys, changed...)
	}
	p.delay.scanEnded(now)
	return keys, nil
}

// scanHour scans the newest cells of one open hour.
func (p *poller) scanHour(ctx context.Context, base int64, now time.Time) (keys [][]byte, err error) {
	h := p.hours[base]
	if h == nil {
		// All kept rows together take at most a quarter of what the view may.
		h = newHourTails(&p.keptBytes, p.feed.cfg.ViewBytes/4)
		p.hours[base] = h
	}

	h.scanStarted()
	err = p.scan(ctx, base, base+encoding.RowSeconds, store.Scan{Columns: h.columns()}, func(rows []store.Row) {
		for i := range rows {
			h.compareRow(&rows[i], now, base, &p.timestamps, &p.delay)
		}
	})
	if err != nil {
		return nil, err
	}

	// None if the scan above has read that column.
	if columns := h.appendColumn(); columns != nil {
		err := p.scan(ctx, base, base+encoding.RowSeconds, store.Scan{Columns: columns}, func(rows []store.Row) {
			for i := range rows {
				h.compareAppended(&rows[i], now, &p.delay)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return h.scanEnded(now, &p.feed.cfg.Poll), nil
}

// rowsRead takes in how rows end that were read.
func (p *poller) rowsRead(rows []store.Row) {
	for i := range rows {
		k, err := p.plan.Schema.ParseRowKey(rows[i].Key)
		if err != nil {
			continue // the operator reports it
		}
		if h := p.hours[int64(k.BaseTime)]; h != nil {
			// The time of reading is not known here; the last scan for late points is less
			// than Poll.Late before it.
			h.rowRead(&rows[i], p.lateScan)
		}
	}
}

// cachedRow appends the cells of a row of an open hour that is kept whole.
func (p *poller) cachedRow(key []byte, cells []store.Cell) ([]store.Cell, bool) {
	k, err := p.plan.Schema.ParseRowKey(key)
	if err != nil {
		return cells, false // reading the row gives the error
	}
	h := p.hours[int64(k.BaseTime)]
	if h == nil || h.rows[string(key)] == nil || !h.rows[string(key)].kept {
		return cells, false
	}
	return appendCells(cells, h.rows[string(key)].row), true
}

// scan reads the plan's rows with base times in [from, to). s has the columns, the
// time range or KeysOnly; scan sets the rest. each gets the rows, block by block.
func (p *poller) scan(ctx context.Context, from, to int64, s store.Scan, each func(rows []store.Row)) error {
	if from >= to {
		return nil
	}
	for _, r := range p.plan.Ranges {
		// Part of a plan range: whole hours of the same salt and metric.
		part := scanplan.Part{Plan: *p.plan, Range: r}
		if from > p.plan.From {
			part.Range.Start = p.hourKey(r, from)
		}
		if to < p.plan.To {
			part.Range.Stop = p.hourKey(r, to)
		}

		// Without a cache of key prefixes, which changes only the cost.
		access := operator.ChooseFilter(&part)
		if access.Nothing { // the tag predicates admit no key of the part
			continue
		}
		s.Table, s.Family, s.Filter = p.plan.Table, encoding.FamilyData, access.Filter
		s.Start, s.Stop = part.Range.Start, part.Range.Stop
		for rows, err := range store.Blocks(ctx, p.feed.cfg.Store, s) {
			if err != nil {
				return err
			}
			each(rows)
		}
	}
	return nil
}

// hourKey returns the first key of an hour with the salt and the metric of a range.
func (p *poller) hourKey(r scanplan.KeyRange, base int64) []byte {
	head := slices.Clone([]byte(r.Start[:p.plan.Schema.BaseTimeAt()]))
	return binary.BigEndian.AppendUint32(head, encoding.KeyTime(base))
}
