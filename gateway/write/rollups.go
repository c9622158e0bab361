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
		ofTable := cfg.Config
		ofTable.Table, ofTable.Observer = table, nil // as in OpenTSDB, rollups make no metadata
		// Pre-aggregates of raw data are stored as points are.
		if table != cfg.Rollups.Raw().PreTable {
			ofTable.Form = rollupCells
		}
		r.writers[table] = New(ofTable, to, series)
	}
	return r
}

// Errors of rollups, in OpenTSDB's words.
var (
	errNoRollups = errors.New("No rollup or aggregations were configured")
	errComputed  = errors.New(
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
		return nil, p.millisError()
	}

	tagValue, err := r.setTag(p)
	if err != nil {
		return nil, err
	}
	if err := r.checkGroupBy(p, tagValue); err != nil {
		return nil, err
	}
	if err := p.Validate(r.cfg.Schema, r.cfg.Allowed...); err != nil {
		return nil, err
	}

	w, err := r.setPlace(p)
	if err != nil {
		return nil, err
	}
	return w.Add(ctx, &p.Point)
}

// millisError is the error of a time in milliseconds. As OpenTSDB's it shows the value's bytes,
// signed, and the flags of its qualifier.
func (p *RollupPoint) millisError() error {
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

// setTag gives a pre-aggregate the tag that distinguishes it, and a rollup of a single series the raw value
// of that tag if the settings want it. It returns the value. It fails if the client has set the tag itself,
// except to the value of a pre-aggregate, in upper or lower case.
func (r *Rollups) setTag(p *RollupPoint) (value string, err error) {
	clients := slices.IndexFunc(p.Tags, func(t Tag) bool { return t.K == r.cfg.TagKey }) // -1 if it has none
	if !p.Grouped {
		if clients >= 0 {
			return "", r.tagError(p, p.Tags[clients].V, "null") // as Java prints what is not there
		}
		if r.cfg.TagRaw {
			p.Tags = append(p.Tags, Tag{r.cfg.TagKey, r.cfg.RawValue})
		}
		return r.cfg.RawValue, nil
	}

	value = strings.ToUpper(p.GroupBy) // as OpenTSDB stores it
	switch {
	case clients < 0:
		p.Tags = append(p.Tags, Tag{r.cfg.TagKey, value})
	case strings.EqualFold(p.Tags[clients].V, p.GroupBy):
		p.Tags[clients].V = value
	default:
		return "", r.tagError(p, p.Tags[clients].V, p.GroupBy)
	}
	return value, nil
}

// tagError is the error of a point whose own tag has another value than its group-by function.
func (r *Rollups) tagError(p *RollupPoint, got, want string) error {
	return fmt.Errorf("Given tag value for %s of %s did not match the group by aggregator of %s for %s %s",
		r.cfg.TagKey, got, want, p.Metric, TagText(p.Tags))
}

// checkGroupBy checks the function of a pre-aggregate; tagValue is the one that setTag has returned.
func (r *Rollups) checkGroupBy(p *RollupPoint, tagValue string) error {
	if !p.Grouped {
		return nil
	}
	if _, ok := aggregate.Lookup(scanplan.Aggregator(strings.ToLower(p.GroupBy))); !ok {
		return fmt.Errorf("Invalid group by aggregator %s with metric %s %s", p.GroupBy, p.Metric, TagText(p.Tags))
	}
	if r.cfg.BlockDerived && isDerived(tagValue) {
		return fmt.Errorf("Derived group by aggregations are not allowed %s with metric %s %s", p.GroupBy, p.Metric,
			TagText(p.Tags))
	}
	return nil
}

// isDerived reports whether values of an aggregator, in upper case, cannot be aggregated further.
func isDerived(aggregator string) bool { return aggregator == "AVG" || aggregator == "DEV" }

// setPlace returns the writer of the point's table and sets where a rollup is in it, p.Rollup. Its
// checks are the last ones: after them names get UIDs.
func (r *Rollups) setPlace(p *RollupPoint) (*Writer, error) {
	table := r.cfg.Rollups.Raw().PreTable // that of a pre-aggregate of raw data
	if p.Interval != "" {
		var err error
		if table, err = r.setCell(p); err != nil {
			return nil, err
		}
	}

	// These two checks come last in OpenTSDB, too, and so count only if all else is right.
	if upper := strings.ToUpper(p.Aggregator); r.cfg.BlockDerived && isDerived(upper) {
		return nil, fmt.Errorf("Derived rollup aggregations are not allowed %s with metric %s %s", upper, p.Metric,
			TagText(p.Tags))
	}
	if p.Interval == "" && !p.Grouped {
		return nil, ErrNoInterval
	}
	return r.writers[table], nil
}

// setCell sets p.Rollup to the cell of a rollup of the interval p.Interval, and returns its table. It fails
// if the settings have no place for it.
func (r *Rollups) setCell(p *RollupPoint) (table string, err error) {
	interval := r.cfg.Rollups.ByName(p.Interval)
	if interval == nil {
		return "", &UnknownIntervalError{p.Interval}
	}
	if p.Aggregator == "" {
		return "", errNoAggregator
	}
	id, ok := r.cfg.Rollups.ID(p.Aggregator)
	if !ok {
		return "", fmt.Errorf("No ID found mapping to aggregator: %s", p.Aggregator)
	}
	if r.cfg.RollupsComputed && !p.Grouped {
		return "", errComputed
	}
	// In the table of raw data a rollup's qualifier means something else.
	if interval.Default {
		return "", fmt.Errorf("The interval %s is that of raw data, which has no rollups", p.Interval)
	}
	// Only a check, before names get UIDs: appendRollupEntry splits the time again.
	if _, _, err := interval.Layout.Split(p.Time); err != nil {
		return "", err
	}

	p.Rollup = &RollupCell{&interval.Layout, id}
	if p.Grouped {
		return interval.PreTable, nil
	}
	return interval.Table, nil
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

// Abandon ends the wait for a store that does not answer: it fails all points that are not known to be
// stored, and new ones. It returns the number of points that were in a batch.
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
	made := map[uint32]int{} // by column and interval, the index in c.out
	for len(entries) > 0 {
		qualifier, value, rest, slot := encoding.RollupEntry(entries)
		m := store.Mutation{Row: key, Family: dataFamily, Qualifier: qualifier, Value: value}
		if i, ok := made[slot]; ok {
			c.out[i] = m
		} else {
			made[slot] = len(c.out)
			c.out = append(c.out, m)
		}
		entries = rest
	}
}
