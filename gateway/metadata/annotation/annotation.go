// Package annotation reads and changes annotations, of a series or global ones. They are
// cells of the data table next to the points, in a form that package encoding describes.
// A query finds the annotations of its series in the rows that it reads, without this
// package; it asks this package for global ones.
// Source: net.opentsdb.meta.Annotation.
package annotation

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Config says where annotations are kept.
type Config struct {
	Store  store.Cells
	Table  string // the data table
	Schema encoding.Schema
}

// Catalog reads and changes annotations. It may be used by several goroutines.
type Catalog struct{ cfg Config }

// New returns the catalog of a data table.
func New(cfg Config) *Catalog { return &Catalog{cfg} }

// Errors with OpenTSDB's texts.
var (
	// ErrNoChange is returned for a change without a new value.
	ErrNoChange = errors.New("No changes detected in Annotation data")
	// ErrConflict is returned if another writer changed the annotation at the same time.
	ErrConflict = errors.New("This may be caused by another process modifying storage data")
	// ErrNoStart is returned for an annotation without a start.
	ErrNoStart = errors.New("The start timestamp has not been set")
)

// RefusedError is returned for wrong arguments, with OpenTSDB's text.
type RefusedError struct{ Text string }

// Error returns the text.
func (e *RefusedError) Error() string { return e.Text }

// Change is a change of an annotation; a nil field keeps its value, as an End of 0 does. TSUID and Start name
// the annotation: TSUID is hex, "" for a global one; Start is in seconds, or in ms if it
// needs more than 32 bits.
type Change struct {
	TSUID              string
	Start              int64
	End                *int64
	Description, Notes *string
	Custom             map[string]string
}

// empty reports whether a change has no new value. Source: Annotation.setNotes.
func (c *Change) empty() bool {
	return (c.End == nil || *c.End == 0) && c.Description == nil && c.Notes == nil && c.Custom == nil
}

// place returns the cell of an annotation, of a global one for an empty TSUID. start is
// in seconds or milliseconds.
func (n *Catalog) place(tsuid string, start int64) (store.CellKey, error) {
	if start < 1 {
		return store.CellKey{}, ErrNoStart
	}
	raw, err := parseTSUID(tsuid)
	if err != nil {
		return store.CellKey{}, err
	}
	row, err := n.cfg.Schema.AppendAnnotationKey(nil, raw, start)
	if err != nil {
		return store.CellKey{}, &RefusedError{err.Error()}
	}
	return store.CellKey{
		Row:       row,
		Family:    encoding.FamilyData,
		Qualifier: encoding.AppendAnnotationQualifier(nil, start),
	}, nil
}

// parseTSUID reads a TSUID. An empty one is that of the global annotations.
func parseTSUID(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	raw, err := encoding.ParseHexUID(text)
	if err != nil {
		return nil, &RefusedError{err.Error()}
	}
	return raw, nil
}

// read returns an annotation and its stored bytes, nil if there is none.
func (n *Catalog) read(ctx context.Context, at store.CellKey) (*encoding.Annotation, []byte, error) {
	rows, err := n.cfg.Store.Get(ctx, n.cfg.Table, at.Family, [][]byte{at.Row})
	if err != nil || len(rows) == 0 {
		return nil, nil, err
	}
	for _, c := range rows[0].Cells {
		if bytes.Equal(c.Qualifier, at.Qualifier) {
			a, err := encoding.ParseAnnotation(c.Value)
			return &a, bytes.Clone(c.Value), err
		}
	}
	return nil, nil, nil
}

// Get returns an annotation, nil if there is none.
func (n *Catalog) Get(ctx context.Context, tsuid string, start int64) (*encoding.Annotation, error) {
	at, err := n.place(tsuid, start)
	if err != nil {
		return nil, err
	}
	a, _, err := n.read(ctx, at)
	return a, err
}

// Put merges a change into the stored annotation or, with overwrite, replaces it. It
// returns what is stored afterwards, ErrNoChange for an empty change, and ErrConflict if
// another writer was faster.
// Source: Annotation.syncToStorage.
func (n *Catalog) Put(ctx context.Context, c Change, overwrite bool) (*encoding.Annotation, error) {
	at, err := n.place(c.TSUID, c.Start)
	if err != nil {
		return nil, err
	}
	if c.empty() {
		return nil, ErrNoChange
	}

	stored, old, err := n.read(ctx, at)
	if err != nil {
		return nil, err
	}

	note := c.merge(stored, overwrite)
	ok, err := n.cfg.Store.CompareAndPut(ctx, n.cfg.Table, at, old, encoding.AppendAnnotation(nil, note))
	if err != nil {
		return nil, fmt.Errorf("annotation at %d: %w", c.Start, err)
	}
	if !ok {
		return nil, ErrConflict
	}
	return &note, nil
}

// merge returns the annotation after the change.
func (c *Change) merge(stored *encoding.Annotation, overwrite bool) encoding.Annotation {
	note := encoding.Annotation{TSUID: c.TSUID, StartTime: c.Start}
	if stored != nil {
		// The start of a stored annotation only moves back, as in OpenTSDB; 0 is a text without one.
		if stored.StartTime > 0 {
			note.StartTime = min(note.StartTime, stored.StartTime)
		}
		if !overwrite {
			note.EndTime, note.Description, note.Notes, note.Custom = stored.EndTime, stored.Description, stored.Notes,
				stored.Custom
		}
	}

	if c.End != nil && *c.End != 0 {
		note.EndTime = *c.End
	}
	if c.Description != nil {
		note.Description = *c.Description
	}
	if c.Notes != nil {
		note.Notes = *c.Notes
	}
	if c.Custom != nil {
		note.Custom = c.Custom
	}
	return note
}

// Delete removes an annotation. It is no error if there is none.
func (n *Catalog) Delete(ctx context.Context, tsuid string, start int64) error {
	at, err := n.place(tsuid, start)
	if err != nil {
		return err
	}
	return n.cfg.Store.Apply(ctx, n.cfg.Table, []store.Mutation{{
		Kind:      store.DeleteCell,
		Row:       at.Row,
		Family:    at.Family,
		Qualifier: at.Qualifier,
	}})
}

// Global returns the global annotations between two times in seconds, in the order of
// their cells. As in OpenTSDB these include annotations that begin after the end, in the
// hour of the end, and not those that end after it. An annotation's times in ms are not
// converted for this: such a start is late enough, such an end is too late.
// Source: Annotation.getGlobalAnnotations.
func (n *Catalog) Global(ctx context.Context, from, to int64) ([]encoding.Annotation, error) {
	switch {
	case to < 1:
		return nil, &RefusedError{"The end timestamp has not been set"}
	case to < from:
		return nil, &RefusedError{"The end timestamp cannot be less than the start timestamp"}
	}

	out := []encoding.Annotation{}
	err := n.scan(ctx, n.globalRange(from, to), nil, func(_ []byte, c store.Cell) error {
		a, err := encoding.ParseAnnotation(c.Value)
		if err != nil {
			return err
		}
		// An annotation without an end has the end 0.
		if a.StartTime >= from && a.EndTime <= to {
			out = append(out, a)
		}
		return nil
	})
	return out, err
}

// hourOf returns the base time of the hour that holds a time, of the first or the last that keys
// can hold for times beyond them.
func hourOf(seconds int64) uint32 {
	return encoding.KeyTime(encoding.Hour(min(max(seconds, 0), encoding.MaxTime)))
}

// globalRange returns the rows of global annotations from the hour of one time to the
// hour of another.
func (n *Catalog) globalRange(from, to int64) store.KeyRange {
	// Global annotations have metric UID 0 and salt 0.
	metric := make(encoding.UID, n.cfg.Schema.MetricWidth)
	r := store.KeyRange{Start: n.cfg.Schema.AppendRangeKey(nil, 0, metric, hourOf(from))}

	// The key of such a row ends with its hour, so the next key is one zero byte longer.
	r.Stop = append(n.cfg.Schema.AppendRangeKey(nil, 0, metric, hourOf(to)), 0)
	return r
}

// scan calls each with every annotation cell of the rows in a range that match keys, or of
// all rows in it if keys is nil.
func (n *Catalog) scan(
	ctx context.Context, rows store.KeyRange, keys *store.KeyPattern, each func(row []byte, c store.Cell) error,
) error {
	// All annotation columns begin with one byte.
	columns := []store.KeyRange{{Start: []byte{encoding.PrefixAnnotation}, Stop: []byte{encoding.PrefixAnnotation + 1}}}
	scan := store.Scan{Table: n.cfg.Table, Family: encoding.FamilyData, Start: rows.Start, Stop: rows.Stop,
		Columns: columns, Filter: store.RowFilter{Pattern: keys}}

	for r, err := range store.Rows(ctx, n.cfg.Store, scan) {
		if err != nil {
			return err
		}
		// A store may return rows that its filter does not admit.
		if keys != nil && !keys.Matches(r.Key) {
			continue
		}

		for _, c := range r.Cells {
			// The qualifier of a point may begin with that byte, too; its length is even.
			if _, _, err := encoding.ParseAnnotationQualifier(c.Qualifier); err != nil {
				continue
			}
			if err := each(r.Key, c); err != nil {
				return err
			}
		}
	}
	return nil
}
