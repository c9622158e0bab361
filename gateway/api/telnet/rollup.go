package telnet

import (
	"errors"
	"fmt"
	"strings"

	"downpour/gateway/write"
)

// rollup handles a line of words "rollup interval-aggregator[:groupby] metric time value
// tagk=tagv …", or with a group-by aggregator alone in place of the first.
// Source: RollupDataPointRpc.importDataPoint.
func (c *conn) rollup() {
	if !c.mayWrite("rollup") {
		return
	}
	if err := c.tryRollup(); err != nil {
		c.counted.bad++
		c.refuseLine("rollup", reasonOf(err), err, rollupErrorText(err))
	}
}

// tryRollup parses the line and adds its value to a batch.
func (c *conn) tryRollup() error {
	if len(c.words) < 6 { // OpenTSDB's text requires one more than it needs
		return fmt.Errorf("not enough arguments (need least 7, got %d)", len(c.words)-1)
	}

	what, metric, at, value := latin1(c.words[1]), latin1(c.words[2]), latin1(c.words[3]), latin1(c.words[4])
	if what == "" {
		return errors.New("Missing interval or aggregator")
	}
	p := rollupOf(what)
	if p.Metric = metric; metric == "" {
		return errors.New("empty metric name")
	}

	var err error
	if p.Time, err = write.ParseTime(at); err != nil {
		return timeError(at)
	}
	if value == "" {
		return errors.New("empty value")
	}
	// As in OpenTSDB, a bad tag is reported before a bad value.
	if p.Tags, err = parseTags(nil, c.words[5:]); err != nil {
		return err
	}
	if p.Value, err = write.ParseValue(value); err != nil {
		return valueError(value)
	}

	batch, err := c.cfg.Rollups.Add(c.ctx, p)
	if err != nil {
		return err
	}
	c.addPending("rollup", batch)
	c.counted.ok++
	return nil
}

// rollupOf reads the word for the kind of the value: "1h-sum", "1h-sum:max", "max".
// Where there is no dash, the group-by aggregator is the aggregator, too, and of
// "sum:max" the word before the colon means nothing.
func rollupOf(word string) *write.RollupPoint {
	p := &write.RollupPoint{Point: write.Point{Narrow: true}}
	first, group, grouped := strings.Cut(word, ":")
	group, _, _ = strings.Cut(group, ":") // OpenTSDB ignores a third word
	interval, aggregator, dashed := strings.Cut(first, "-")

	switch {
	case dashed:
		p.Interval, p.Aggregator = interval, aggregator
		// Java's split drops an empty word at the end.
		p.GroupBy, p.Grouped = group, grouped && group != ""
	case grouped && group != "":
		p.Aggregator, p.GroupBy, p.Grouped = group, group, true
	default:
		p.Aggregator, p.GroupBy, p.Grouped = first, first, true
	}
	return p
}

// rollupErrorText words the error of a rollup as OpenTSDB does.
func rollupErrorText(err error) string {
	var unknown *write.UnknownIntervalError
	switch {
	case errors.As(err, &unknown):
		return "No such rollup: " + err.Error()
	case errors.Is(err, write.ErrNoInterval):
		return "HBase error: " + err.Error()
	}
	return putErrorText(err)
}
