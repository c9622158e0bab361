package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
	"downpour/pushdown/rollup"
	"downpour/pushdown/store"
)

// RollupPoint is a value that somebody has computed of points: a rollup, of the points
// that a series has in an interval, or a pre-aggregate, of the points that several
// series have at one time, or both. Source: RollUpDataPoint.
type RollupPoint struct {
	Point
	Interval   string // name of the interval, "" for none
	Aggregator string // by which points of an interval became the value
	// GroupBy is the function by which values of several series became one, if Grouped
	// is set.
	GroupBy string
	Grouped bool
}

// RollupsConfig is how rollups are written.
type RollupsConfig struct {
	// Config is that of raw data; Table, Observer and, for rollups, Form do not count.
	Config
	Rollups *rollup.Config // nil refuses all rollups
	// TagKey is the tag that distinguishes pre-aggregates. RawValue is its value for
	// rollups of single series, which get it only if TagRaw is set.
	TagKey, RawValue string
	TagRaw           bool
	// RollupsComputed refuses rollups of series, because Downpour computes them from raw data.
	RollupsComputed bool
	// BlockDerived refuses averages and deviations, which cannot be aggregated further.
	BlockDerived bool
}

// Rollups writes rollups and pre-aggregates as points are written: a Writer for each of
// their tables.
type Rollups struct {
	cfg     RollupsConfig
	writers map[string]*Writer // by table
}

// NewRollups starts the writers.
func NewRollups(cfg RollupsConfig, to store.Writer, series *SeriesCache) *Rollups {
	r := &Rollups{cfg: cfg, writers: map[string]*Writer{}}
	if cfg.Rollups == nil {
		return r
	}

	for _, table := range cfg.Rollups.Tables() {
		one := cfg.Config
		one.Table, one.Observer = table, nil // as in OpenTSDB, rollups make no metadata
		// Pre-aggregates of raw data are stored as points are.
		if table != cfg.Rollups.Raw().PreTable {
			one.Form = rollupCells
		}
		r.writers[table] = New(one, to, series)
	}
	return r
}

// Errors of rollups, in OpenTSDB's words.
var (
	errNoRollups = errors.New("No rollup or aggregations were configured")
	errMade      = errors.New(
		"Rollups of series are made here from raw data (DOWNPOUR_ROLLUPS=auto:…), and cannot be put")
	errNoAggregator = errors.New("Aggregator cannot be null or empty.")
	// ErrNoInterval is returned for a point that has neither an interval nor a group-by
	// aggregator.
	ErrNoInterval = errors.New("Interval cannot be null for a non-group by point")
)

// UnknownIntervalError is returned for an interval that is not configured.
// Source: NoSuchRollupForIntervalException.
type UnknownIntervalError struct{ Interval string }

// Error names the interval.
func (e *UnknownIntervalError) Error() string {
	return "No rollups configured for the interval: " + e.Interval
}

// Add puts a point into a batch of the table that it belongs to, as Writer.Add does. It
// changes the point's tags to those of the series that it writes. If there are several
// faults the error is the first that OpenTSDB finds. Source:
// TSDB.addAggregatePointInternal.
func (r *Rollups) Add(ctx context.Context, p *RollupPoint) (*Batch, error) {
	if r.cfg.Rollups == nil {
		return nil, errNoRollups
	}
	if p.Grouped && p.GroupBy == "" {
		return nil, fmt.Errorf(
			"Cannot write a group by data point without specifying the aggregation function. Metric=%s tags=%s",
			p.Metric, TagText(p.Tags))
	}
	if IsMillis(p.Time) { // rollups have whole seconds
		return nil, p.badTime()
	}

	value, err := r.tag(p)
	if err != nil {
		return nil, err
	}
	if err := r.checkGroupBy(p, value); err != nil {
		return nil, err
	}
	if err := p.Validate(r.cfg.Schema, r.cfg.Allowed...); err != nil {
		return nil, err
	}

	w, err := r.place(p)
	if err != nil {
		return nil, err
	}
	return w.Add(ctx, &p.Point)
}

// badTime is the error of a time in milliseconds. As OpenTSDB's it shows the value's bytes,
// signed, and the flags of its qualifier.
func (p *RollupPoint) badTime() error {
	value := p.appendValue(nil)
	signed := make([]string, len(value))
	for i, b := range value {
		signed[i] = fmt.Sprint(int8(b))
	}
	flags := len(value) - 1
	if p.Value.Float {
		flags |= floatFlag
	}
	return fmt.Errorf("bad timestamp=%d when trying to add value=[%s]/%d to metric=%s, tags=%s", p.Time,
		strings.Join(signed, ", "), flags, p.Metric, TagText(p.Tags))
}

// floatFlag is the bit of a qualifier that is set for floats.
const floatFlag = 8

// tag gives the point the tag that distinguishes pre-aggregates, and returns its value.
func (r *Rollups) tag(p *RollupPoint) (string, error) {
	i := slices.IndexFunc(p.Tags, func(t Tag) bool { return t.K == r.cfg.TagKey })
	switch {
	case i >= 0 && !(p.Grouped &&
		strings.EqualFold(p.Tags[i].V, p.GroupBy)): // the client's own tag must be the one set below
		by := p.GroupBy
		if !p.Grouped {
			by = "null" // as Java prints what is not there
		}
		return "", fmt.Errorf("Given tag value for %s of %s did not match the group by aggregator of %s for %s %s",
			r.cfg.TagKey, p.Tags[i].V, by, p.Metric, TagText(p.Tags))
	case !p.Grouped:
		if r.cfg.TagRaw {
			p.Tags = append(p.Tags, Tag{r.cfg.TagKey, r.cfg.RawValue})
		}
		return r.cfg.RawValue, nil
	}

	value := strings.ToUpper(p.GroupBy) // as OpenTSDB stores it
	if i < 0 {
		p.Tags = append(p.Tags, Tag{K: r.cfg.TagKey})
		i = len(p.Tags) - 1
	}
	p.Tags[i].V = value
	return value, nil
}

// checkGroupBy checks the function of a pre-aggregate; value is that of its tag.
func (r *Rollups) checkGroupBy(p *RollupPoint, value string) error {
	if !p.Grouped {
		return nil
	}
	if _, ok := aggregate.Lookup(scanplan.Aggregator(strings.ToLower(p.GroupBy))); !ok {
		return fmt.Errorf("Invalid group by aggregator %s with metric %s %s", p.GroupBy, p.Metric, TagText(p.Tags))
	}
	if r.cfg.BlockDerived && derived(value) {
		return fmt.Errorf("Derived group by aggregations are not allowed %s with metric %s %s", p.GroupBy, p.Metric,
			TagText(p.Tags))
	}
	return nil
}

// derived reports whether an aggregator's values cannot be aggregated further.
func derived(aggregator string) bool { return aggregator == "AVG" || aggregator == "DEV" }

// place returns the writer of the point's table and sets where the point is in it. Its
// checks are the last ones: after them names get UIDs.
func (r *Rollups) place(p *RollupPoint) (*Writer, error) {
	table := r.cfg.Rollups.Raw().PreTable // that of a pre-aggregate of raw data
	if p.Interval != "" {
		interval := r.cfg.Rollups.ByName(p.Interval)
		if interval == nil {
			return nil, &UnknownIntervalError{p.Interval}
		}
		if p.Aggregator == "" {
			return nil, errNoAggregator
		}
		id, ok := r.cfg.Rollups.ID(p.Aggregator)
		if !ok {
			return nil, fmt.Errorf("No ID found mapping to aggregator: %s", p.Aggregator)
		}
		if r.cfg.RollupsComputed && !p.Grouped {
			return nil, errMade
		}
		// In the table of raw data a rollup's qualifier means something else.
		if interval.Default {
			return nil, fmt.Errorf("The interval %s is that of raw data, which has no rollups", p.Interval)
		}

		if table = interval.Table; p.Grouped {
			table = interval.PreTable
		}
		p.Rollup = &RollupCell{&interval.Layout, id}
		// Only a check, before names get UIDs: appendEntry splits the time again.
		if _, _, err := interval.Layout.Split(p.Time); err != nil {
			return nil, err
		}
	}

	// These two checks come last in OpenTSDB, too, and so count only if all else is right.
	if upper := strings.ToUpper(p.Aggregator); r.cfg.BlockDerived && derived(upper) {
		return nil, fmt.Errorf("Derived rollup aggregations are not allowed %s with metric %s %s", upper, p.Metric,
			TagText(p.Tags))
	}
	if p.Interval == "" && !p.Grouped {
		return nil, ErrNoInterval
	}
	return r.writers[table], nil
}

// Close writes what was accepted and ends the writers.
func (r *Rollups) Close() {
	// All commit windows end now, and not one after another.
	for _, w := range r.writers {
		w.stopAccepting()
	}
	for _, w := range r.writers {
		w.Close()
	}
}

// Abandon ends the wait for a store that does not answer; see Writer.Abandon.
func (r *Rollups) Abandon() (points int) {
	for _, w := range r.writers {
		points += w.Abandon()
	}
	return points
}

// addRollups adds a cell for each value of a row. The last of several values of one column and
// interval counts, with any types: as cells they would have one timestamp, and it would be unknown
// which is newer.
func (c *cells) addRollups(key, entries []byte) {
	last := map[uint32]int{} // slot to index in out
	for len(entries) > 0 {
		qualifier, value, rest, slot := encoding.RollupEntry(entries)
		m := store.Mutation{Row: key, Family: dataFamily, Qualifier: qualifier, Value: value}
		if at, ok := last[slot]; ok {
			c.out[at] = m
		} else {
			last[slot] = len(c.out)
			c.out = append(c.out, m)
		}
		entries = rest
	}
}
