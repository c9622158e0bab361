// Package meta keeps OpenTSDB's meta data: what users say about names (UIDMeta, in the
// UID table) and about series (TSMeta, in the meta table), and which series there are
// with how many points, which puts record by themselves.
//
//	table      row    family  column       value
//	tsdb-uid   UID    name    metric_meta  UIDMeta, JSON (tagk_meta, tagv_meta)
//	tsdb-meta  TSUID  name    ts_meta      TSMeta, JSON
//	tsdb-meta  TSUID  name    ts_ctr       8-byte counter
//
// The bytes are those of package encoding, so that an OpenTSDB on the same tables can
// read and change them. Every change is a compare-and-set on the bytes read.
// Source: UIDMeta, TSMeta.
package meta

import (
	"context"
	"errors"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Names is the dictionary of names, which gateway/uid implements.
type Names interface {
	// Name returns the name of a UID, or a *uid.NoSuchIDError.
	Name(ctx context.Context, kind encoding.UIDKind, u encoding.UID) (string, error)
	// Resolve returns the UID of a name, or a *uid.NoSuchNameError.
	Resolve(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error)
}

// Config says where meta data is kept.
type Config struct {
	Store     store.Cells
	UIDTable  string
	MetaTable string
	Schema    encoding.Schema
	Names     Names
	// MappingTimes makes the time of a UID's mapping its time of creation, as long as no UIDMeta says another:
	// then no UID needs a UIDMeta for that. It is for a store whose mappings this process writes.
	MappingTimes bool
	// Now is the clock; default time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Catalog reads and changes meta data. It may be used by several goroutines.
type Catalog struct{ cfg Config }

// New returns the catalog of the configured tables.
func New(cfg Config) *Catalog { return &Catalog{cfg.withDefaults()} }

// Errors of a change, with OpenTSDB's texts.
var (
	// ErrNoChange is returned for a change without a new value.
	ErrNoChange = errors.New("No changes detected in meta data")
	// ErrConflict is returned if another writer changed the data at the same time.
	ErrConflict = errors.New("This may be caused by another process modifying storage data")
	// ErrNoTSMeta is returned for a change of a series without a TSMeta.
	ErrNoTSMeta = errors.New("Requested TSMeta did not exist")
)

// Flags say what puts record, by the names of OpenTSDB's tsd.core.meta.enable_*. As
// there, Incrementing and RealtimeTS have no effect without Tracking.
type Flags struct {
	// Tracking records each series. Without the next two flags it writes the value 1
	// into ts_ctr.
	Tracking bool
	// Incrementing counts points in ts_ctr; it needs RealtimeTS.
	Incrementing bool
	// RealtimeTS makes a TSMeta for each new series.
	RealtimeTS bool
	// RealtimeUID records when each UID was assigned: in a UIDMeta, unless Config.MappingTimes is set.
	RealtimeUID bool
}

// cell reads one cell of the family "name". It returns nil if there is none.
func (c *Catalog) cell(ctx context.Context, table string, row []byte, qualifier string) ([]byte, error) {
	rows, err := c.cfg.Store.Get(ctx, table, encoding.FamilyName, [][]byte{row})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	for _, x := range rows[0].Cells {
		if string(x.Qualifier) == qualifier {
			return append([]byte{}, x.Value...), nil
		}
	}
	return nil, nil
}

// exchange writes a cell of the family "name" if its value is still old, nil for none.
// Otherwise it returns ErrConflict.
func (c *Catalog) exchange(ctx context.Context, table string, row []byte, qualifier string, old, value []byte) error {
	key := store.CellKey{Row: row, Family: encoding.FamilyName, Qualifier: []byte(qualifier)}
	ok, err := c.cfg.Store.CompareAndPut(ctx, table, key, old, value)
	if err == nil && !ok {
		err = ErrConflict
	}
	return err
}

// remove deletes a cell of the family "name".
func (c *Catalog) remove(ctx context.Context, table string, row []byte, qualifier string) error {
	return c.cfg.Store.Apply(ctx, table, []store.Mutation{{
		Kind:      store.DeleteCell,
		Row:       row,
		Family:    encoding.FamilyName,
		Qualifier: []byte(qualifier),
	}})
}

// textOr returns the given text, or the stored one if none is given.
func textOr(given *string, was string) string {
	if given != nil {
		return *given
	}
	return was
}

// earlier returns the earlier of two times of creation; 0 is unknown.
func earlier(given *int64, was int64) int64 {
	if given == nil || *given == 0 || was > 0 && was < *given {
		return was
	}
	return *given
}
