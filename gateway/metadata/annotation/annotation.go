// Package annotation keeps notes on series and global ones: cells of the data
// table beside the points, whose form package encoding describes. Notes that
// lie in rows which a query reads come with its answer and are not this
// package's affair; global ones do when the query asks for them.
// Source: net.opentsdb.meta.Annotation.
package annotation

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Store is what annotations need of a store.
type Store interface {
	store.Reader
	store.Writer
	store.Atomic
}

// Config says where annotations are kept.
type Config struct {
	Store  Store
	Table  string // the data table
	Schema encoding.Schema
}

// Notes reads and changes annotations. It is for many goroutines.
type Notes struct{ cfg Config }

// New returns the annotations of a data table.
func New(cfg Config) *Notes { return &Notes{cfg} }

var (
	// ErrNoChange tells that nothing was asked to be changed.
	ErrNoChange = errors.New("No changes detected in Annotation data") //lint:ignore ST1005 a client's text
	// ErrConflict tells that somebody else changed the note at the same time.
	ErrConflict = errors.New("This may be caused by another process modifying storage data") //lint:ignore ST1005 a client's text
	// ErrNoStart refuses a note without a time.
	ErrNoStart = errors.New("The start timestamp has not been set") //lint:ignore ST1005 a client's text
)

// RefusedError is the refusal of arguments.
type RefusedError struct{ Text string }

// Error is the text.
func (e *RefusedError) Error() string { return e.Text }

// Change asks to store a note; a nil field was not given. TSUID and Start name
// the note: hex, "" for a global one; seconds, or ms beyond 32 bits.
type Change struct {
	TSUID              string
	Start              int64
	End                *int64
	Description, Notes *string
	Custom             map[string]string
}

// empty tells that nothing would change: what equals a new note's value counts
// as not given. Source: Annotation.setNotes.
func (c *Change) empty() bool {
	blank := func(s *string) bool { return s == nil || *s == "" }
	return (c.End == nil || *c.End == 0) && blank(c.Description) && blank(c.Notes) && c.Custom == nil
}

// place is a note's cell.
func (n *Notes) place(tsuid string, start int64) (store.CellKey, error) {
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
	return store.CellKey{Row: row, Family: encoding.FamilyData, Qualifier: encoding.AppendAnnotationQualifier(nil, start)}, nil
}

// parseTSUID reads hex; a digit too few is a leading zero.
// Source: UniqueId.stringToUid.
func parseTSUID(text string) ([]byte, error) {
	if len(text)%2 != 0 {
		text = "0" + text
	}
	raw, err := hex.DecodeString(text)
	if err != nil {
		return nil, &RefusedError{"contains illegal character for hexBinary: " + text}
	}
	return raw, nil
}

// read returns a note and its bytes, nil if there is none.
func (n *Notes) read(ctx context.Context, at store.CellKey) (*encoding.Annotation, []byte, error) {
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

// Get returns a note, nil if there is none.
func (n *Notes) Get(ctx context.Context, tsuid string, start int64) (*encoding.Annotation, error) {
	at, err := n.place(tsuid, start)
	if err != nil {
		return nil, err
	}
	a, _, err := n.read(ctx, at)
	return a, err
}

// Put merges a change into the stored note, or, with overwrite, puts it in the
// note's place. It returns what is stored afterwards; ErrNoChange if the change
// asks for nothing, ErrConflict if another writer came between.
// Source: Annotation.syncToStorage.
func (n *Notes) Put(ctx context.Context, c Change, overwrite bool) (*encoding.Annotation, error) {
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

// merge is the note after the change.
func (c *Change) merge(stored *encoding.Annotation, overwrite bool) encoding.Annotation {
	note := encoding.Annotation{TSUID: c.TSUID, StartTime: c.Start}
	if stored != nil {
		if stored.StartTime > 0 {
			note.StartTime = min(note.StartTime, stored.StartTime)
		}
		if !overwrite {
			note.EndTime, note.Description, note.Notes, note.Custom = stored.EndTime, stored.Description, stored.Notes, stored.Custom
		}
	}
	if c.End != nil && *c.End != 0 {
		note.EndTime = *c.End
	}
	if c.Description != nil && *c.Description != "" {
		note.Description = *c.Description
	}
	if c.Notes != nil && *c.Notes != "" {
		note.Notes = *c.Notes
	}
	if c.Custom != nil {
		note.Custom = c.Custom
	}
	return note
}

// Delete removes a note, which need not be there.
func (n *Notes) Delete(ctx context.Context, tsuid string, start int64) error {
	at, err := n.place(tsuid, start)
	if err != nil {
		return err
	}
	return n.cfg.Store.Apply(ctx, n.cfg.Table, []store.Mutation{{Kind: store.DeleteCell, Row: at.Row, Family: at.Family, Qualifier: at.Qualifier}})
}

// Global returns the global notes of the hours from one time to another, in
// seconds, in the order of their cells. As OpenTSDB does, it returns also those
// that begin after the end, in its hour, and leaves out those that end after it.
// Source: Annotation.getGlobalAnnotations.
func (n *Notes) Global(ctx context.Context, from, to int64) ([]encoding.Annotation, error) {
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
		if a.StartTime >= from && a.EndTime <= to {
			out = append(out, a)
		}
		return nil
	})
	return out, err
}

// lastHour is the last base time that a row key can hold.
const lastHour = int64(1<<32-1) / encoding.RowSeconds * encoding.RowSeconds

// globalRange are the rows of global notes of the hours from and to lie in.
func (n *Notes) globalRange(from, to int64) store.KeyRange {
	metric := make(encoding.UID, n.cfg.Schema.MetricWidth)
	hour := func(t int64) uint32 { return encoding.BaseTime(max(0, min(t, lastHour))) }
	r := store.KeyRange{Start: n.cfg.Schema.AppendRangeKey(nil, 0, metric, hour(from))}
	// A global row's key ends with its hour: the next key is behind it.
	r.Stop = append(n.cfg.Schema.AppendRangeKey(nil, 0, metric, hour(to)), 0)
	return r
}

// scan passes every annotation cell of the rows that match in a range.
func (n *Notes) scan(ctx context.Context, rows store.KeyRange, keys *store.KeyPattern, each func(row []byte, c store.Cell) error) error {
	// All annotation columns begin with one byte.
	columns := []store.KeyRange{{Start: []byte{encoding.PrefixAnnotation}, Stop: []byte{encoding.PrefixAnnotation + 1}}}
	scan := store.Scan{Table: n.cfg.Table, Family: encoding.FamilyData, Start: rows.Start, Stop: rows.Stop,
		Columns: columns, Filter: store.RowFilter{Pattern: keys}}
	for r, err := range store.Rows(ctx, n.cfg.Store, scan) {
		if err != nil {
			return err
		}
		if keys != nil && !keys.Matches(r.Key) {
			continue
		}
		for _, c := range r.Cells {
			// A point's column may begin so too; its length is even.
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
