package meta

import (
	"context"
	"errors"
	"fmt"
	"math"

	"downpour/encoding"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// TSMeta is the meta data of a series, in the form of the HTTP API. Tags are tagk, tagv,
// tagk, tagv, ….
type TSMeta struct {
	TSUID           encoding.UID        `json:"tsuid"`
	Metric          *UIDMeta            `json:"metric,omitempty"`
	Tags            []UIDMeta           `json:"tags,omitempty"`
	DisplayName     string              `json:"displayName"`
	Description     string              `json:"description"`
	Notes           string              `json:"notes"`
	Created         int64               `json:"created"` // seconds
	Custom          map[string]string   `json:"custom,omitempty"`
	Units           string              `json:"units"`
	DataType        string              `json:"dataType"`
	Retention       int                 `json:"retention"`
	Max             encoding.JSONDouble `json:"max"`
	Min             encoding.JSONDouble `json:"min"`
	LastReceived    int64               `json:"lastReceived"` // seconds, when the counter was written
	TotalDatapoints int64               `json:"totalDatapoints"`
}

// TSChange is a change of a TSMeta; a nil field keeps its value.
type TSChange struct {
	DisplayName, Description, Notes, Units, DataType *string
	Created                                          *int64
	Custom                                           map[string]string
	Retention                                        *int
	Max, Min                                         *float64
}

// empty reports whether a change has no new value.
func (t *TSChange) empty() bool {
	return t.DisplayName == nil && t.Description == nil && t.Notes == nil && t.Units == nil && t.DataType == nil &&
		t.Custom == nil && (t.Created == nil || *t.Created == 0) &&
		(t.Retention == nil || *t.Retention == 0) && t.Max == nil && t.Min == nil
}

// newTSMeta returns the meta data of a series that no user has described.
func newTSMeta(tsuid encoding.UID, created int64) encoding.TSMeta {
	nan := encoding.JSONDouble(math.NaN())
	return encoding.TSMeta{TSUID: tsuid.String(), Created: created, Max: nan, Min: nan}
}

// TSMeta returns the meta data of a series, nil if it has none. It returns a
// *uid.NoSuchIDError for a UID without a name. Source: TSMeta.getTSMeta.
func (c *Catalog) TSMeta(ctx context.Context, tsuid encoding.UID) (*TSMeta, error) {
	rows, err := c.cfg.Store.Get(ctx, c.cfg.MetaTable, encoding.FamilyName, [][]byte{tsuid})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return c.fromRow(ctx, rows[0])
}

// fromRow reads a row of the meta table. It returns nil if the row has no TSMeta.
func (c *Catalog) fromRow(ctx context.Context, r store.Row) (*TSMeta, error) {
	out := TSMeta{TSUID: append(encoding.UID{}, r.Key...)}
	found := false
	for _, x := range r.Cells {
		switch string(x.Qualifier) {
		case encoding.MetaCounterQualifier:
			n, err := encoding.ParseCounter(x.Value)
			if err != nil {
				return nil, fmt.Errorf("series %s: %w", out.TSUID, err)
			}
			out.TotalDatapoints, out.LastReceived = n, x.Timestamp/1000
		case encoding.TSMetaQualifier:
			m, err := encoding.ParseTSMeta(x.Value)
			if err != nil {
				return nil, fmt.Errorf("series %s: %w", out.TSUID, err)
			}
			found = true
			out.fill(m)
		}
	}

	// A counter alone says that the series exists, not that it is described.
	if !found {
		return nil, nil
	}
	return &out, c.fillNames(ctx, &out)
}

// fill sets the fields that are stored.
func (t *TSMeta) fill(m encoding.TSMeta) {
	t.DisplayName, t.Description, t.Notes, t.Created, t.Custom = m.DisplayName, m.Description, m.Notes, m.Created,
		m.Custom
	t.Units, t.DataType, t.Retention, t.Max, t.Min = m.Units, m.DataType, m.Retention, m.Max, m.Min
}

// fillNames adds the UIDMeta of metric and tags.
func (c *Catalog) fillNames(ctx context.Context, t *TSMeta) error {
	metric, tags, err := c.cfg.Schema.SplitTSUID(t.TSUID)
	if err != nil {
		return err
	}
	m, err := c.UIDMeta(ctx, encoding.UIDMetric, metric)
	if err != nil {
		return err
	}
	t.Metric = &m

	for _, p := range c.cfg.Schema.AppendPairs(nil, tags) {
		k, err := c.UIDMeta(ctx, encoding.UIDTagK, p.K)
		if err != nil {
			return err
		}
		v, err := c.UIDMeta(ctx, encoding.UIDTagV, p.V)
		if err != nil {
			return err
		}
		t.Tags = append(t.Tags, k, v)
	}
	return nil
}

// MaxTSMetas and MaxTSMetaBytes bound what TSMetas returns: the number of series, and the
// memory that they take.
const (
	MaxTSMetas     = 100_000
	MaxTSMetaBytes = 64 << 20
)

// bytes estimates the memory that meta data takes.
func (t *TSMeta) bytes() int {
	n := 300 + len(t.TSUID) + len(t.DisplayName) + len(t.Description) + len(t.Notes) + customBytes(t.Custom)
	for i := range t.Tags {
		n += t.Tags[i].bytes()
	}
	if t.Metric != nil {
		n += t.Metric.bytes()
	}
	return n
}

func (u *UIDMeta) bytes() int {
	return 200 + len(u.Name) + len(u.Description) + len(u.Notes) + len(u.DisplayName) + customBytes(u.Custom)
}

func customBytes(m map[string]string) (n int) {
	for k, v := range m {
		n += 80 + len(k) + len(v)
	}
	return n
}

// TSMetas returns the TSMeta of the series that match a row filter in a range of keys, in
// the order of their TSUIDs. Source: TSUIDQuery.getTSMetas.
func (c *Catalog) TSMetas(ctx context.Context, keys store.KeyRange, filter store.RowFilter) ([]*TSMeta, error) {
	scan := store.Scan{
		Table:  c.cfg.MetaTable,
		Family: encoding.FamilyName,
		Start:  keys.Start,
		Stop:   keys.Stop,
		Filter: filter,
	}
	out, bytes := []*TSMeta{}, 0
	for r, err := range store.Rows(ctx, c.cfg.Store, scan) {
		if err != nil {
			return nil, err
		}
		// A store may return rows that its filter does not admit.
		if !filter.Matches(r.Key) {
			continue
		}

		m, err := c.fromRow(ctx, r)
		if err != nil {
			return nil, err
		}
		if m != nil {
			out = append(out, m)
			bytes += m.bytes()
			if err := memory.Reserve(ctx, int64(2*m.bytes())); err != nil { // in the list and in the answer
				return nil, err
			}
		}
		if len(out) > MaxTSMetas || bytes > MaxTSMetaBytes {
			return nil, fmt.Errorf("more than %d series have meta data, or %d MiB of it: name some tags", MaxTSMetas,
				MaxTSMetaBytes>>20)
		}
	}
	return out, nil
}

// ChangeTSMeta merges a change into the TSMeta of a series or, with overwrite, replaces
// it. It returns what is stored afterwards, and ErrNoTSMeta if there is none. Source:
// TSMeta.syncToStorage.
func (c *Catalog) ChangeTSMeta(
	ctx context.Context, tsuid encoding.UID, change TSChange, overwrite bool,
) (*TSMeta, error) {
	if change.empty() {
		return nil, ErrNoChange
	}
	// Without this a series with a UID that has no name would be changed, and could not be answered.
	if err := c.fillNames(ctx, &TSMeta{TSUID: tsuid}); err != nil {
		return nil, err
	}

	old, err := c.cell(ctx, c.cfg.MetaTable, tsuid, encoding.TSMetaQualifier)
	if err != nil {
		return nil, err
	}
	// A change of what is not stored is refused; CreateTSMeta makes it.
	if old == nil {
		return nil, ErrNoTSMeta
	}
	was, err := encoding.ParseTSMeta(old)
	if err != nil {
		return nil, err
	}

	base := was
	if overwrite {
		base = newTSMeta(tsuid, 0)
	}
	m := change.merge(base)
	m.TSUID, m.Created = tsuid.String(), earlier(change.Created, was.Created)
	// Only a text that lacks its TSUID gets one.
	if was.TSUID != "" {
		m.TSUID = was.TSUID
	}

	if err := c.exchange(ctx, c.cfg.MetaTable, tsuid, encoding.TSMetaQualifier, old,
		encoding.AppendTSMeta(nil, m)); err != nil {
		return nil, err
	}
	return c.TSMeta(ctx, tsuid)
}

// merge returns m with the values of the change.
func (t *TSChange) merge(m encoding.TSMeta) encoding.TSMeta {
	m.DisplayName, m.Description, m.Notes = textOr(t.DisplayName, m.DisplayName), textOr(t.Description, m.Description),
		textOr(t.Notes, m.Notes)
	m.Units, m.DataType = textOr(t.Units, m.Units), textOr(t.DataType, m.DataType)
	if t.Custom != nil {
		m.Custom = t.Custom
	}
	// A retention of 0 counts as not given, as in empty.
	if t.Retention != nil && *t.Retention != 0 {
		m.Retention = *t.Retention
	}
	if t.Max != nil {
		m.Max = encoding.JSONDouble(*t.Max)
	}
	if t.Min != nil {
		m.Min = encoding.JSONDouble(*t.Min)
	}
	return m
}

// HasTSMeta reports whether a series has a TSMeta.
func (c *Catalog) HasTSMeta(ctx context.Context, tsuid encoding.UID) (bool, error) {
	text, err := c.cell(ctx, c.cfg.MetaTable, tsuid, encoding.TSMetaQualifier)
	return text != nil, err
}

// CreateTSMeta stores the TSMeta of a series that has none, and a counter of 0 if it has
// no counter either. Source: UniqueIdRpc, its create=true.
func (c *Catalog) CreateTSMeta(ctx context.Context, tsuid encoding.UID, change TSChange) (*TSMeta, error) {
	m := change.merge(newTSMeta(tsuid, 0))
	m.Created = earlier(change.Created, 0)

	err := c.exchange(ctx, c.cfg.MetaTable, tsuid, encoding.MetaCounterQualifier, nil, encoding.AppendCounter(nil, 0))
	// A counter that is there already keeps its count.
	if err != nil && !errors.Is(err, ErrConflict) {
		return nil, err
	}

	if err := c.exchange(ctx, c.cfg.MetaTable, tsuid, encoding.TSMetaQualifier, nil,
		encoding.AppendTSMeta(nil, m)); err != nil {
		return nil, err
	}
	return c.TSMeta(ctx, tsuid)
}

// DeleteTSMeta removes the TSMeta of a series; its counter stays.
func (c *Catalog) DeleteTSMeta(ctx context.Context, tsuid encoding.UID) error {
	return c.remove(ctx, c.cfg.MetaTable, tsuid, encoding.TSMetaQualifier)
}
