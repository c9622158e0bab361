// Package uiduse finds which UIDs rows have: by the keys of the data table and of the tables of rollups, which hold
// the UIDs of a series. Values are not read.
//
// A look sees every row that was stored before it began, and may miss one that is stored while it runs. Who
// removes what no row has keeps writers away first, and looks then.
package uiduse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"downpour/encoding"
	"downpour/gateway/metadata/wholetable"
	"downpour/pushdown/store"
)

// Key is a UID of a kind.
type Key struct {
	Kind encoding.UIDKind
	UID  string // its bytes
}

// Row is a row that has a UID.
type Row struct {
	Table string
	Key   encoding.UID // all bytes of the row key
}

// UIDs yields the UIDs of a series, as views.
func UIDs(s encoding.Schema, metric, tags []byte) iter.Seq2[encoding.UIDKind, []byte] {
	return func(yield func(encoding.UIDKind, []byte) bool) {
		if !yield(encoding.UIDMetric, metric) {
			return
		}
		for step := s.TagWidth(); len(tags) >= step; tags = tags[step:] {
			if !yield(encoding.UIDTagK, tags[:s.TagKWidth]) || !yield(encoding.UIDTagV, tags[s.TagKWidth:step]) {
				return
			}
		}
	}
}

// Tables are the tables whose rows have UIDs.
type Tables struct {
	Store  store.Reader
	Schema encoding.Schema
	// Names are the data table, and then those of rollups. Nobody has to make the tables of rollups before there are
	// some, so one that does not exist has no rows.
	Names []string
	// Progress gets a line now and then while all keys of a table are read; nil for nobody.
	Progress func(line string)
}

// progressEvery is the number of rows after which progress is reported.
const progressEvery = 1000

// fewMetrics is how many metrics are looked up at their places in a table. For more all keys are read.
const fewMetrics = 100

// Find returns a row for each wanted UID that rows have. For a few metrics it looks at one place in each salt bucket;
// for tags it reads keys until each has been found, and if one is in no row, those of all tables. Errors
// are the store's.
func (t *Tables) Find(ctx context.Context, wanted map[Key]bool) (map[Key]Row, error) {
	f := &finding{Tables: t, found: map[Key]Row{}, places: map[Key]bool{}, keys: map[Key]bool{}}
	for k := range wanted {
		if k.Kind == encoding.UIDMetric {
			f.places[k] = true
		} else {
			f.keys[k] = true
		}
	}
	if len(f.places) > fewMetrics {
		f.places, f.keys = nil, wanted
	}
	f.missing = len(f.keys)

	err := t.each(func(table string) error {
		if err := f.lookAtPlaces(ctx, table); err != nil || f.missing == 0 {
			return err
		}
		return f.readKeys(ctx, table)
	})
	return f.found, err
}

// each calls look with each table that there is.
func (t *Tables) each(look func(table string) error) error {
	for i, table := range t.Names {
		err := look(table)
		if i > 0 && errors.Is(err, store.ErrNoTable) {
			continue
		}
		if err != nil {
			return fmt.Errorf("looking for rows of UIDs in %s: %w", table, err)
		}
	}
	return nil
}

// finding is a look for some UIDs.
type finding struct {
	*Tables
	found map[Key]Row
	// places are metrics that are looked up, and keys all other UIDs. missing is how many of keys are not found yet.
	places, keys map[Key]bool
	missing      int
}

// lookAtPlaces finds a row of each metric in a table, at the beginning of its rows in each salt bucket.
func (f *finding) lookAtPlaces(ctx context.Context, table string) error {
	for k := range f.places {
		for bucket := 0; bucket < f.Schema.Buckets() && f.found[k].Key == nil; bucket++ {
			start := f.Schema.AppendRangeKey(nil, bucket, encoding.UID(k.UID), 0)
			s := store.Scan{
				Table:    table,
				Family:   encoding.FamilyData,
				Start:    start,
				Stop:     encoding.PrefixEnd(start[:f.Schema.BaseTimeAt()]),
				KeysOnly: true,
			}
			for row, err := range store.Rows(ctx, f.Store, s) {
				if err != nil {
					return err
				}
				// A key of an impossible length is of no series.
				if _, err := f.Schema.ParseRowKey(row.Key); err == nil {
					f.found[k] = Row{table, bytes.Clone(row.Key)}
					break
				}
			}
		}
	}
	return nil
}

// readKeys reads the keys of a table until nothing is missing.
func (f *finding) readKeys(ctx context.Context, table string) error {
	for row, err := range f.rows(ctx, table, f.filter()) {
		if err != nil {
			return err
		}
		// A key of an impossible length is of no series. That of a global annotation has no tags, and a metric that
		// is never assigned.
		k, err := f.Schema.ParseRowKey(row.Key)
		if err != nil {
			continue
		}
		for kind, u := range UIDs(f.Schema, k.Metric, k.Tags) {
			if !f.keys[Key{kind, string(u)}] || f.found[Key{kind, string(u)}].Key != nil {
				continue
			}
			f.found[Key{kind, string(u)}] = Row{table, bytes.Clone(row.Key)}
			f.missing--
		}
		if f.missing == 0 {
			break
		}
	}
	return nil
}

// filter has the store pass on only rows with the tag key, if that is all that is looked for. A tag value may be
// anywhere.
func (f *finding) filter() (r store.RowFilter) {
	if len(f.keys) != 1 {
		return r
	}
	for k := range f.keys {
		if k.Kind == encoding.UIDTagK {
			r.Pattern = &store.KeyPattern{
				Head:     f.Schema.HeadWidth(),
				NameLen:  f.Schema.TagKWidth,
				ValueLen: f.Schema.TagVWidth,
				Wants:    []store.Want{{Name: []byte(k.UID)}},
			}
		}
	}
	return r
}

// Each calls take with every UID of every row, with the same ones often, and with bytes that are not take's to keep. It
// ends with the first error, that of take too, and with one for a key that is of no series: the settings may be wrong.
func (t *Tables) Each(ctx context.Context, take func(kind encoding.UIDKind, u []byte) error) error {
	return t.each(func(table string) error {
		for row, err := range t.rows(ctx, table, store.RowFilter{}) {
			if err != nil {
				return err
			}
			k, err := t.Schema.ParseRowKey(row.Key)
			if err != nil { //fault:uid-reclaim-passes-over-keys TestTables
				return fmt.Errorf("%w (are DOWNPOUR_SALT_WIDTH and DOWNPOUR_UID_WIDTH_* right? gateway fsck "+
					"--full-scan lists such rows)", err)
			}
			for kind, u := range UIDs(t.Schema, k.Metric, k.Tags) {
				if err := take(kind, u); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// rows reads the keys of a table.
func (t *Tables) rows(ctx context.Context, table string, filter store.RowFilter) iter.Seq2[store.Row, error] {
	s := store.Scan{Table: table, Family: encoding.FamilyData, Filter: filter, KeysOnly: true}
	return wholetable.Counted(ctx, t.Store, s, progressEvery, func(rows int) {
		if t.Progress != nil {
			t.Progress(fmt.Sprintf("%s: %d keys read", table, rows))
		}
	})
}
