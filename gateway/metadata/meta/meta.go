// Package meta keeps OpenTSDB's meta data: what users say of names (UIDMeta, in
// the UID table) and of series (TSMeta, in the meta table), and which series
// there are and how many points they got, which puts record by themselves.
//
//	table      row    family  column       value
//	tsdb-uid   UID    name    metric_meta  UIDMeta, JSON (tagk_meta, tagv_meta)
//	tsdb-meta  TSUID  name    ts_meta      TSMeta, JSON
//	tsdb-meta  TSUID  name    ts_ctr       8-byte counter
//
// The bytes are those of package encoding, so that an OpenTSDB beside us reads
// and changes them. Every change is a compare-and-set on the bytes read.
// Source: UIDMeta, TSMeta.
package meta

import (
	"context"
	"errors"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Store is what meta data needs of a store.
type Store interface {
	store.Reader
	store.Writer
	store.Atomic
}

// Names is the dictionary of names. gateway/uid has it.
type Names interface {
	// Name returns the name of a UID, or a *uid.NoSuchIDError.
	Name(ctx context.Context, kind encoding.UIDKind, u encoding.UID) (string, error)
	// Resolve returns the UID of a name, or a *uid.NoSuchNameError.
	Resolve(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error)
}

// Config says where meta data is kept.
type Config struct {
	Store     Store
	UIDTable  string
	MetaTable string
	Schema    encoding.Schema
	Names     Names
	// Now is the clock; default time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Catalog reads and changes meta data. It is for many goroutines.
type Catalog struct{ cfg Config }

// New returns the catalog of the configured tables.
func New(cfg Config) *Catalog { return &Catalog{cfg.withDefaults()} }

// Errors of a change.
var (
	// ErrNoChange tells that nothing was asked to be changed.
	ErrNoChange = errors.New("No changes detected in meta data") //lint:ignore ST1005 a client's text
	// ErrConflict tells that somebody else changed the data at the same time.
	ErrConflict = errors.New("This may be caused by another process modifying storage data") //lint:ignore ST1005 a client's text
	// ErrNoTSMeta tells that the series to change has no TSMeta.
	ErrNoTSMeta = errors.New("Requested TSMeta did not exist") //lint:ignore ST1005 a client's text
)

// Flags say what puts record, by the names of OpenTSDB's tsd.core.meta.enable_*.
// As there, the flags for series act only while Tracking is on.
type Flags struct {
	// Tracking records each series: with neither of the next two, by the
	// value 1 in ts_ctr.
	Tracking bool
	// Incrementing counts points in ts_ctr; it needs RealtimeTS.
	Incrementing bool
	// RealtimeTS makes a TSMeta for each new series.
	RealtimeTS bool
	// RealtimeUID makes a UIDMeta for each UID given.
	RealtimeUID bool
}

// cell reads one cell of family name; nil if there is none.
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

// exchange writes a cell of family name that still holds old.
func (c *Catalog) exchange(ctx context.Context, table string, row []byte, qualifier string, old, value []byte) error {
	key := store.CellKey{Row: row, Family: encoding.FamilyName, Qualifier: []byte(qualifier)}
	ok, err := c.cfg.Store.CompareAndPut(ctx, table, key, old, value)
	if err == nil && !ok {
		err = ErrConflict
	}
	return err
}

// remove deletes a cell of family name.
func (c *Catalog) remove(ctx context.Context, table string, row []byte, qualifier string) error {
	return c.cfg.Store.Apply(ctx, table, []store.Mutation{{Kind: store.DeleteCell, Row: row, Family: encoding.FamilyName, Qualifier: []byte(qualifier)}})
}

// or is a text that was given, or else the one that was there. An empty text
// counts as not given: what is there can be replaced by it only with overwrite.
// Source: UIDMeta.setNotes.
func or(given *string, was string) string {
	if given != nil && *given != "" {
		return *given
	}
	return was
}

// earlier is the earlier of two times of creation, 0 being unknown.
func earlier(given *int64, was int64) int64 {
	if given == nil || *given == 0 || was > 0 && was < *given {
		return was
	}
	return *given
}
