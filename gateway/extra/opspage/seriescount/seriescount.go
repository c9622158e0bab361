// Package seriescount counts series: those of each metric, and the values that each tag key has in
// them, and how many of these are new. It reads the keys of the meta table's rows, one for each series, and nothing
// of their cells. Where that table has none, because puts do not record their series, it reads the keys of the data
// table's rows of the last full hour, in which a series that lives has one.
package seriescount

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/gateway/extra/opspage/uidusage"
	"downpour/gateway/uid"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// Names is the dictionary of names, which gateway/uid implements.
type Names interface {
	// Name returns the name of a UID, or a *uid.NoSuchIDError.
	Name(ctx context.Context, kind encoding.UIDKind, u encoding.UID) (string, error)
	// Each returns the names of a kind that begin with prefix.
	Each(ctx context.Context, kind encoding.UIDKind, prefix string) iter.Seq2[uid.Entry, error]
	uidusage.Names
}

// Config says what is counted.
type Config struct {
	Store     store.Reader
	Table     string // the meta table
	DataTable string
	Schema    encoding.Schema
	Names     Names
	Now       func() time.Time
}

// Counts are what was counted.
type Counts struct {
	// Series are all of the table. Complete is false if the time was over before all were read.
	Series   int64 `json:"series"`
	Complete bool  `json:"complete"`
	// Unreadable are rows whose keys are no series.
	Unreadable int64 `json:"unreadable,omitempty"`
	// Hour, if not 0, is the hour whose rows were counted instead of the meta table's, in seconds.
	Hour int64 `json:"hour,omitempty"`
	// Metrics are those with most series, TagKeys those with most values; the numbers of all follow.
	Metrics    []Named `json:"metrics"`
	TagKeys    []Named `json:"tagKeys"`
	AllMetrics int     `json:"allMetrics"`
	AllTagKeys int     `json:"allTagKeys"`
	// UIDs are those of each kind.
	UIDs []uidusage.UIDs `json:"uids"`
}

// Named is a name with its count.
type Named struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
	// New is how many of them are new: values that got their UID within the last day, and series with such a
	// value, or whose metric or tag key did.
	New int64 `json:"new,omitempty"`
}

// entryBytes is about what a counted metric or value takes.
const entryBytes = 96

// counting is a count under way.
type counting struct {
	Config
	ctx     context.Context
	out     Counts
	recent  [3]given // by kind
	metrics map[string]tally
	values  map[string]map[string]struct{} // by tag key
	pairs   []encoding.TagPair             // scratch
	kept    int64                          // entries that are not reserved yet
}

// tally counts things, and how many of them are new.
type tally struct{ all, recent int64 }

// given are the UIDs of one kind that were given within the last day.
type given struct{ first, last encoding.UID }

func (g given) has(u encoding.UID) bool {
	return bytes.Compare(u, g.first) >= 0 && bytes.Compare(u, g.last) <= 0
}

// usage reads how many UIDs there are, and which of them are new.
func (c *counting) usage() (err error) {
	if c.out.UIDs, err = uidusage.Read(c.ctx, c.Names, c.Now()); err != nil {
		return err
	}
	for kind, u := range c.out.UIDs {
		if u.Grown == 0 {
			continue
		}
		width := c.Schema.UIDWidth(encoding.UIDKind(kind))
		g := &c.recent[kind]
		if g.first, err = encoding.AppendUID(nil, uint64(u.Used-u.Grown)+1, width); err != nil {
			return err
		}
		if g.last, err = encoding.AppendUID(nil, uint64(u.Used), width); err != nil {
			return err
		}
	}
	return nil
}

// Run counts until everything is counted or within ends; what was counted until then is returned
// as incomplete. top bounds both lists. The error is that of ctx, of the store, or that the
// memory is short.
func Run(ctx, within context.Context, cfg Config, top int) (*Counts, error) {
	c := &counting{Config: cfg, ctx: ctx, metrics: map[string]tally{}, values: map[string]map[string]struct{}{}}
	if err := c.usage(); err != nil {
		return nil, err
	}
	err := c.meta(within)
	if errors.Is(err, store.ErrNoTable) { // nobody has to make it who does not record series
		err = nil
	}
	if err == nil && c.out.Series == 0 {
		c.out.Hour = encoding.Hour(cfg.Now().Unix()) - encoding.RowSeconds
		err = c.rows(within)
	}
	c.out.Complete = err == nil
	if err != nil && (ctx.Err() != nil || within.Err() == nil) {
		return nil, err
	}
	if c.out.Series == 0 {
		c.out.Hour = 0
	}

	c.out.AllMetrics, c.out.AllTagKeys = len(c.metrics), len(c.values)
	keys := make(map[string]tally, len(c.values))
	for k, values := range c.values {
		n := tally{all: int64(len(values))}
		for v := range values {
			if c.recent[encoding.UIDTagV].has(encoding.UID(v)) {
				n.recent++
			}
		}
		keys[k] = n
	}
	if c.out.Metrics, err = c.most(c.metrics, encoding.UIDMetric, top); err != nil {
		return nil, err
	}
	c.out.TagKeys, err = c.most(keys, encoding.UIDTagK, top)
	return &c.out, err
}

// meta counts the series of the meta table.
func (c *counting) meta(ctx context.Context) error {
	for row, err := range store.Rows(ctx, c.Store, store.Scan{
		Table:    c.Table,
		Family:   encoding.FamilyName,
		KeysOnly: true,
	}) {
		if err != nil {
			return err
		}
		if err := c.add(row.Key); err != nil {
			return err
		}
	}
	return nil
}

// rows counts the series that have a row of the hour.
func (c *counting) rows(ctx context.Context) error {
	var tsuid []byte
	for metric, err := range c.Names.Each(ctx, encoding.UIDMetric, "") {
		if err != nil {
			return err
		}
		for bucket := range c.Schema.Buckets() {
			for row, err := range store.Rows(ctx, c.Store, store.Scan{
				Table:    c.DataTable,
				Family:   encoding.FamilyData,
				Start:    c.Schema.AppendRangeKey(nil, bucket, metric.UID, encoding.KeyTime(c.out.Hour)),
				Stop:     c.Schema.AppendRangeKey(nil, bucket, metric.UID, encoding.KeyTime(c.out.Hour+1)),
				KeysOnly: true,
			}) {
				if err != nil {
					return err
				}
				tsuid = c.Schema.AppendTSUID(tsuid[:0], row.Key)
				if err := c.add(tsuid); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// add counts a series.
func (c *counting) add(tsuid []byte) error {
	metric, tags, err := c.Schema.SplitTSUID(tsuid)
	if err != nil {
		c.out.Unreadable++
		return nil
	}

	c.out.Series++
	isNew := c.recent[encoding.UIDMetric].has(metric)
	c.pairs = c.Schema.AppendPairs(c.pairs[:0], tags)
	for _, p := range c.pairs {
		isNew = isNew || c.recent[encoding.UIDTagK].has(p.K) || c.recent[encoding.UIDTagV].has(p.V)
		values := c.values[string(p.K)]
		if values == nil {
			values = map[string]struct{}{}
			c.values[string(p.K)] = values
		}
		if _, ok := values[string(p.V)]; !ok {
			values[string(p.V)] = struct{}{}
			c.kept++
		}
	}

	n := c.metrics[string(metric)]
	if n.all++; n.all == 1 {
		c.kept++
	}
	if isNew {
		n.recent++
	}
	c.metrics[string(metric)] = n

	if c.kept < 1000 {
		return nil
	}
	bytes := c.kept * entryBytes
	c.kept = 0
	return memory.Reserve(c.ctx, bytes)
}

// most returns the UIDs with the largest counts, by their names. One that has no name is shown in
// hex.
func (c *counting) most(counts map[string]tally, kind encoding.UIDKind, top int) ([]Named, error) {
	uids := make([]string, 0, len(counts))
	for u := range counts {
		uids = append(uids, u)
	}
	slices.SortFunc(uids, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b].all, counts[a].all), cmp.Compare(a, b))
	})

	out := []Named{}
	for _, u := range uids[:min(top, len(uids))] {
		name, err := c.Names.Name(c.ctx, kind, encoding.UID(u))
		var nameless *uid.NoSuchIDError
		if errors.As(err, &nameless) {
			name, err = encoding.UID(u).String(), nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, Named{name, counts[u].all, counts[u].recent})
	}
	return out, nil
}
