// Package metasync makes the meta data that is missing: a TSMeta and a counter for each series
// of the data table, a UIDMeta for each of its UIDs, and times of creation that are not later
// than the first row.
//
// The keys of the data table are read once, in their order: salt, metric, base time, tags. So a
// series comes first in its first hour, and again in each later hour of its metric. The series
// of one metric under one salt are kept in memory and forgotten at its end; they are compared
// as they are, not by a hash, and none is taken for another. Those of a metric that take more
// than Config.Bytes are read in parts: the keys of that metric are read again for each half
// of its series, and so on. UIDs are kept with the hour of their first row; if they take as
// much, what is known so far is written, and they are forgotten.
//
// Every write is a compare-and-put on what was read, so that objects which gateways, TSDs and
// users write during a run stay. Nothing is kept between runs: what an ended run has made is
// found as it should be by the next one.
// Source: MetaSync.
package metasync

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"downpour/encoding"
	"downpour/gateway/metadata/wholetable"
	"downpour/pushdown/store"
)

// Config says where data and meta data are.
type Config struct {
	Store           store.Cells
	Data, UID, Meta string // tables
	Schema          encoding.Schema
	// Bytes bounds the memory of the series of a metric, and that of all UIDs. Default
	// 64 MiB each.
	Bytes int
	// Say gets a line for each object that is left out, Progress what is being done,
	// often. They must not be nil.
	Say, Progress func(line string)
}

const defaultBytes = 64 << 20

// Report counts what was done, or would be.
type Report struct {
	Rows   int64 `json:"rows"`
	Series int64 `json:"series"`
	// Made and Changed are objects: those that were missing, and those with a time of
	// creation that was too late. Counters are those that were missing.
	MadeTSMeta     int64 `json:"madeTSMeta"`
	ChangedTSMeta  int64 `json:"changedTSMeta"`
	Counters       int64 `json:"counters"`
	MadeUIDMeta    int64 `json:"madeUIDMeta"`
	ChangedUIDMeta int64 `json:"changedUIDMeta"`
	// Nameless are UIDs without a name; series that have one are counted as Skipped.
	Nameless int64 `json:"nameless"`
	Skipped  int64 `json:"skipped"`
	// Unreadable are objects that are no JSON of their kind, and keys of no series.
	Unreadable int64 `json:"unreadable"`
}

// Run makes the missing meta data. It can be ended and run again at any time. Errors are the
// store's.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if cfg.Bytes <= 0 {
		cfg.Bytes = defaultBytes
	}
	y := &syncer{Config: cfg, report: new(Report), uids: map[key]*known{}}
	err := y.scan(ctx)
	if err == nil {
		err = y.flush(ctx)
	}
	return y.report, err
}

// syncer is a run.
type syncer struct {
	Config
	report *Report
	// uids are the UIDs of series so far, which take about uidBytes.
	uids     map[key]*known
	uidBytes int
	chunk    []found
}

// key is a UID of a kind.
type key struct {
	kind encoding.UIDKind
	uid  string
}

// known is what is known of a UID.
type known struct {
	hour     int64 // base time of its first row
	nameless bool
}

// found is a series and the base time of its first row.
type found struct {
	tsuid encoding.UID
	hour  int64
}

// scan reads the whole data table, metric by metric.
func (y *syncer) scan(ctx context.Context) error {
	var start []byte
	for {
		large, err := y.scanFrom(ctx, start)
		if large == nil || err != nil {
			return err
		}
		if err := y.halves(ctx, large); err != nil {
			return err
		}
		// The scan goes on behind the metric that had to be read in parts. Where no key can be
		// behind it only the chunk is left to do: nil would be the table's beginning again.
		if start = encoding.PrefixEnd(large); start == nil {
			return y.work(ctx, 1)
		}
	}
}

// scanFrom reads the data table from a key on. If the series of a metric take too much
// memory it returns the beginning of that metric's keys, which have then to be read again.
func (y *syncer) scanFrom(ctx context.Context, start []byte) (large []byte, err error) {
	set := newSeries(nil, y.Bytes, wholetable.Share{})
	err = y.keys(ctx, start, nil, func(prefix []byte, k encoding.RowKey) error {
		// Another metric or salt begins, and none of the one before comes any more.
		if !bytes.Equal(prefix, set.prefix) {
			if err := y.take(ctx, set); err != nil {
				return err
			}
			set = newSeries(bytes.Clone(prefix), y.Bytes, wholetable.Share{})
		}
		return set.add(k)
	})
	switch {
	case errors.Is(err, wholetable.ErrMuch):
		return set.prefix, nil
	case err != nil:
		return nil, err
	}
	if err := y.take(ctx, set); err != nil {
		return nil, err
	}
	return nil, y.work(ctx, 1)
}

// halves reads the keys of a metric under a salt twice or more, each time for a part of its
// series.
func (y *syncer) halves(ctx context.Context, prefix []byte) error {
	metric := encoding.UID(prefix[y.Schema.SaltWidth:])
	err := wholetable.Share{}.Halves(func(half wholetable.Share) error {
		y.Progress(fmt.Sprintf("metric %s has many series: its keys are read again for %s", metric, half))
		set := newSeries(prefix, y.Bytes, half)
		err := y.keys(ctx, prefix, encoding.PrefixEnd(prefix),
			func(_ []byte, k encoding.RowKey) error { return set.add(k) })
		if err != nil {
			return err
		}
		return y.take(ctx, set)
	})
	if errors.Is(err, wholetable.ErrMuch) {
		return fmt.Errorf("metasync: the series of metric %s: %w", metric, err)
	}
	return err
}

// progressEvery is the number of rows after which progress is reported.
const progressEvery = 1 << 14

// keys calls each with the rows of series in a range of the data table. prefix is salt and
// metric.
func (y *syncer) keys(
	ctx context.Context, start, stop []byte, each func(prefix []byte, k encoding.RowKey) error,
) error {
	s := store.Scan{Table: y.Data, Family: encoding.FamilyData, Start: start, Stop: stop, KeysOnly: true}
	before := y.report.Rows
	progress := func(rows int) {
		y.Progress(fmt.Sprintf("%s: %d keys read, %d series so far", y.Data, before+int64(rows), y.report.Series))
	}
	for row, err := range wholetable.Counted(ctx, y.Store, s, progressEvery, progress) {
		if err != nil {
			return err
		}
		y.report.Rows++

		k, err := y.Schema.ParseRowKey(row.Key)
		switch {
		case err == nil && k.Global():
			continue // annotations of no series
		case err != nil || len(k.Tags) == 0:
			y.report.Unreadable++
			continue
		}
		if err := each(row.Key[:y.Schema.BaseTimeAt()], k); err != nil {
			return err
		}
	}
	return nil
}

// perChunk is the number of series that are looked up at a time.
const perChunk = 1000

// take moves the series of a complete set into the chunk, and works each time that is full.
func (y *syncer) take(ctx context.Context, set *series) error {
	for _, tags := range slices.Sorted(maps.Keys(set.hours)) {
		y.report.Series++
		y.chunk = append(y.chunk, found{encoding.UID(string(set.prefix[y.Schema.SaltWidth:]) + tags), set.hours[tags]})
		if err := y.work(ctx, perChunk); err != nil {
			return err
		}
	}
	return nil
}

// series is the set of a metric's series under one salt, or of a part of them.
type series struct {
	prefix []byte // salt and metric
	share  wholetable.Share
	budget wholetable.Budget
	hours  map[string]int64 // base time of the first row, by tags
}

func newSeries(prefix []byte, most int, share wholetable.Share) *series {
	return &series{prefix: prefix, share: share, budget: wholetable.Budget{Most: most}, hours: map[string]int64{}}
}

// entryBytes is about what an entry of a map takes on top of its key.
const entryBytes = 72

// add adds the series of a row, if it belongs to the part and is new: the hours of a metric
// ascend, so its first row comes first. It returns wholetable.ErrMuch if the series does not fit.
func (s *series) add(k encoding.RowKey) error {
	if _, ok := s.hours[string(k.Tags)]; ok || !s.share.Has(k.Tags) {
		return nil
	}
	if err := s.budget.Take(len(k.Tags) + entryBytes); err != nil {
		return err
	}
	s.hours[string(k.Tags)] = int64(k.BaseTime)
	return nil
}
