// Package rollup is the configuration of rollups and pre-aggregates: which tables hold
// values of which intervals, and which aggregators have a column there. It is
// OpenTSDB's tsd.rollups.config:
//
//	{"aggregationIds": {"sum": 0, "count": 1, "min": 2, "max": 3},
//	 "intervals": [
//	  {"table": "tsdb", "preAggregationTable": "tsdb-preagg",
//	   "interval": "1m", "rowSpan": "1h", "defaultInterval": true},
//	  {"table": "tsdb-rollup-1h", "preAggregationTable": "tsdb-rollup-preagg-1h",
//	   "interval": "1h", "rowSpan": "1d", "delaySla": "2d"}]}
//
// The default interval is raw data; its second table holds pre-aggregates that are not rolled up.
// Unknown members are ignored.
//
// The package is pure except Read.
// Source: net.opentsdb.rollup.RollupConfig, RollupInterval.
package rollup

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
)

// Config is a valid configuration. It does not change.
type Config struct {
	// Intervals are in the order of the text.
	Intervals []Interval
	ids       map[string]byte // of aggregators, by their names in lower case
}

// Interval is one interval and its two tables.
type Interval struct {
	Name     string // as configured, such as 1h; it is found only by this exact text
	Table    string // rollups of series
	PreTable string // rolled-up pre-aggregates
	Layout   encoding.RollupLayout
	// Default marks the interval of raw data. Table is not read or written as a rollup.
	Default bool
	// Delay is the number of seconds after which a rollup surely exists, 0 if not set.
	// Source: delaySla.
	Delay int64
}

// maxText bounds the text of a configuration, in bytes.
const maxText = 1 << 20

// Read returns the configuration that a setting names: the path of a file that ends in
// .json, or the JSON itself.
func Read(setting string) (*Config, error) {
	if !strings.HasSuffix(setting, ".json") {
		return Parse([]byte(setting))
	}

	file, err := os.Open(setting)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	// One byte more than Parse accepts, so that a longer file is refused and not cut.
	text, err := io.ReadAll(io.LimitReader(file, maxText+1))
	if err != nil {
		return nil, err
	}
	c, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	return c, nil
}

// Parse reads a configuration. Its error names the first field that is wrong.
func Parse(text []byte) (*Config, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("rollups: %d bytes, want at most %d", len(text), maxText)
	}
	// encoding/json matches names in any case: delaySla fills DelaySLA.
	var in struct {
		AggregationIDs map[string]int `json:"aggregationIds"`
		Intervals      []struct {
			Table, PreAggregationTable, Interval, RowSpan, DelaySLA string
			DefaultInterval                                         bool
		}
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&in); err != nil {
		return nil, fmt.Errorf(
			"rollups: want the JSON of tsd.rollups.config or the path of a file that ends in .json: %w", err)
	}

	c := &Config{}
	var err error
	if c.ids, err = readIDs(in.AggregationIDs); err != nil {
		return nil, err
	}
	if len(in.Intervals) == 0 {
		return nil, errors.New("rollups: no intervals")
	}
	for _, i := range in.Intervals {
		one := Interval{Name: i.Interval, Table: i.Table, PreTable: i.PreAggregationTable, Default: i.DefaultInterval}
		if err := one.read(i.RowSpan, i.DelaySLA); err != nil {
			return nil, fmt.Errorf("rollups: interval %q: %w", i.Interval, err)
		}
		c.Intervals = append(c.Intervals, one)
	}
	return c, c.validate()
}

// readIDs checks the columns of aggregators.
func readIDs(in map[string]int) (map[string]byte, error) {
	if len(in) == 0 {
		return nil, errors.New("rollups: no aggregationIds")
	}

	out, names := make(map[string]byte, len(in)), map[int]string{}
	for name, id := range in {
		lower := strings.ToLower(name)
		if id < 0 || id > math.MaxInt8 {
			return nil, fmt.Errorf("rollups: aggregationIds: %s has %d, want 0 to %d", name, id, math.MaxInt8)
		}
		// Sorted, because a map gives them in any order.
		if other, taken := names[id]; taken {
			return nil, fmt.Errorf("rollups: aggregationIds: %s and %s both have %d", min(name, other),
				max(name, other), id)
		}
		if _, twice := out[lower]; twice {
			return nil, fmt.Errorf("rollups: aggregationIds: %s is there twice", lower)
		}
		if _, ok := aggregate.Lookup(scanplan.Aggregator(lower)); !ok {
			return nil, fmt.Errorf("rollups: aggregationIds: %s is no aggregator", name)
		}
		out[lower], names[id] = byte(id), name
	}
	return out, nil
}

// read reads the texts of an interval and checks it.
func (i *Interval) read(span, delay string) (err error) {
	if i.Table == "" || i.PreTable == "" {
		return fmt.Errorf("table %q and preAggregationTable %q, want both", i.Table, i.PreTable)
	}

	ms, err := duration(i.Name)
	if err != nil {
		return err
	}
	if ms%1000 != 0 {
		return fmt.Errorf("got %d ms, want whole seconds", ms)
	}

	count, unit, err := split(span)
	if err != nil {
		return fmt.Errorf("rowSpan: %w", err)
	}
	i.Layout = encoding.RollupLayout{Interval: ms / 1000, Span: encoding.RowSpan{Count: int(count), Unit: unit}}
	if err := i.Layout.Validate(); err != nil {
		return err
	}

	if delay == "" {
		return nil
	}
	if ms, err = duration(delay); err != nil {
		return fmt.Errorf("delaySla: %w", err)
	}
	if i.Delay = ms / 1000; i.Delay < 1 {
		return fmt.Errorf("delaySla %s, want at least 1s", delay)
	}
	return nil
}

// validate checks what concerns several intervals: names, defaults, and that no table holds values
// of two intervals, which their qualifiers would not distinguish.
func (c *Config) validate() error {
	names, tables, defaults := map[string]bool{}, map[string]string{}, 0
	for i := range c.Intervals {
		one := &c.Intervals[i]
		if names[one.Name] {
			return fmt.Errorf("rollups: interval %q is there twice", one.Name)
		}
		names[one.Name] = true
		if one.Default {
			defaults++
		}
		for _, t := range []string{one.Table, one.PreTable} {
			if other, taken := tables[t]; taken && other != one.Name {
				return fmt.Errorf("rollups: table %s holds interval %q and interval %q", t, other, one.Name)
			}
			tables[t] = one.Name
		}
	}
	if defaults != 1 {
		return fmt.Errorf("rollups: %d intervals have defaultInterval, want 1", defaults)
	}
	return nil
}

// unitMS are the lengths of units. Source: DateTime.parseDuration.
var unitMS = map[string]int64{
	"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000, "n": 30 * 86_400_000,
	"y": 365 * 86_400_000,
}

// split divides a duration such as 6h into number and unit.
func split(text string) (n int64, unit string, err error) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	n, err = strconv.ParseInt(text[:digits], 10, 32)
	if unit = strings.ToLower(text[digits:]); err != nil || n <= 0 || unitMS[unit] == 0 {
		return 0, "", fmt.Errorf("got %q, want a number and ms, s, m, h, d, w, n or y", text)
	}
	return n, unit, nil
}

// duration returns the milliseconds of a duration.
func duration(text string) (int64, error) {
	n, unit, err := split(text)
	return n * unitMS[unit], err
}

// ByName returns the interval of a name, nil if there is none.
func (c *Config) ByName(name string) *Interval {
	for i := range c.Intervals {
		if c.Intervals[i].Name == name {
			return &c.Intervals[i]
		}
	}
	return nil
}

// Raw returns the default interval.
func (c *Config) Raw() *Interval {
	for i := range c.Intervals {
		if c.Intervals[i].Default {
			return &c.Intervals[i]
		}
	}
	return nil
}

// ID returns the column of an aggregator, in whatever case it is written.
func (c *Config) ID(aggregator string) (byte, bool) {
	id, ok := c.ids[strings.ToLower(aggregator)]
	return id, ok
}

// Matching returns the intervals that divide a downsample interval in seconds, the
// longest first. If two are equally long the one configured last is returned. Source:
// RollupConfig.getRollupInterval.
func (c *Config) Matching(seconds int64) (out []*Interval) {
	for i := len(c.Intervals) - 1; i >= 0; i-- {
		one := &c.Intervals[i]
		known := slices.ContainsFunc(out, func(o *Interval) bool { return o.Layout.Interval == one.Layout.Interval })
		if !known && seconds%one.Layout.Interval == 0 {
			out = append(out, one)
		}
	}
	slices.SortFunc(out, func(a, b *Interval) int { return cmp.Compare(b.Layout.Interval, a.Layout.Interval) })
	return out
}

// SeriesTables returns, sorted and each once, Table of all intervals but the default one: rollups of series.
func (c *Config) SeriesTables() (out []string) {
	for i := range c.Intervals {
		if one := &c.Intervals[i]; !one.Default {
			out = append(out, one.Table)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Tables returns, sorted and each once, Table and PreTable of all intervals, without Table
// of the default one, which is no rollup.
func (c *Config) Tables() (out []string) {
	out = c.SeriesTables()
	for i := range c.Intervals {
		out = append(out, c.Intervals[i].PreTable)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
