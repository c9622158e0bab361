package dashboard

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"downpour/gateway/metadata/tables"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// The rows of the table. A head names the document of each version that is kept; a
// writer that changes it from what it was has saved. A document is in a row of its own, which is written
// before the head names it and never changed:
//
//	dashboard/web                                       s:head  {"version":7,…}
//	dashboard-document/web/0000000000000007-9f3c2a1b…   s:json  the document
const (
	Family = tables.FamilyState // of all cells

	headPrefix     = "dashboard/"
	documentPrefix = "dashboard-document/"
	headColumn     = "head"
	documentColumn = "json"
)

// Kept is how many versions of a dashboard are kept, with the one in force.
const Kept = 20

// ErrNotFound is returned for a dashboard, or a version of one, that does not exist.
var ErrNotFound = errors.New("no such dashboard")

// Version describes one version of a dashboard.
type Version struct {
	Version int64     `json:"version"`        // from 1
	Saved   time.Time `json:"saved,omitzero"` // by the clock of the gateway that saved it
	By      string    `json:"by"`             // the name of the token, empty where none is needed
	Summary
	// Row is the key of its document; empty for a deletion, which is a version, too.
	Row string `json:"row,omitempty"`
}

// Deleted reports whether this version is a deletion.
func (v Version) Deleted() bool { return v.Row == "" }

// head is the cell of a dashboard that is compared and set: its versions, the newest first.
// A deletion leaves it, so that no number is given twice.
type head struct {
	Versions []Version `json:"versions"`
}

// now returns the version in force, the zero value if there is none.
func (h *head) now() Version {
	if len(h.Versions) == 0 {
		return Version{}
	}
	return h.Versions[0]
}

// A ConflictError says that a save or a deletion was made from another version than the one
// in force. Nothing was changed.
type ConflictError struct {
	Name string
	From int64   // 0: it was to be a new one
	Now  Version // the zero value if there is none
}

// Error says which version is in force, and since when.
func (e *ConflictError) Error() string {
	now := "there is no such dashboard"
	switch {
	case e.Now.Version > 0 && e.Now.Deleted():
		now = fmt.Sprintf("it was deleted at %s%s", e.Now.Saved.UTC().Format(time.DateTime), by(e.Now.By))
	case e.Now.Version > 0:
		now = fmt.Sprintf("version %d was saved at %s%s", e.Now.Version, e.Now.Saved.UTC().Format(time.DateTime),
			by(e.Now.By))
	}
	from := fmt.Sprintf("version %d", e.From)
	if e.From == 0 {
		from = "a new dashboard"
	}
	return fmt.Sprintf("dashboard %s: %s, this change is made from %s", e.Name, now, from)
}

func by(token string) string {
	if token == "" {
		return " UTC"
	}
	return " UTC with the token " + token
}

// Listed is a dashboard in a list.
type Listed struct {
	Name string `json:"name"`
	Version
}

// Store keeps dashboards in a table. All fields are set before it is used.
type Store struct {
	Cells store.Cells
	Table string
	Now   func() time.Time
}

// List returns all dashboards by name, without those that are deleted.
func (s *Store) List(ctx context.Context) ([]Listed, error) {
	var out []Listed
	scan := store.Scan{Table: s.Table, Family: Family, Start: []byte(headPrefix), Stop: after(headPrefix)}
	for row, err := range store.Rows(ctx, s.Cells, scan) {
		if err != nil {
			return nil, s.explained(err)
		}
		h, err := parseHead(row)
		if err != nil {
			return nil, err
		}
		v := h.now()
		if v.Version == 0 || v.Deleted() {
			continue
		}
		name := strings.TrimPrefix(string(row.Key), headPrefix)
		// The entry, and the text of it in the answer.
		if err := memory.Reserve(ctx, int64(2*(len(name)+len(v.Title)+len(v.By))+512)); err != nil {
			return nil, err
		}
		v.Row = ""
		out = append(out, Listed{name, v})
	}
	return out, nil
}

// after returns the first key behind all that begin with prefix.
func after(prefix string) []byte {
	stop := []byte(prefix)
	stop[len(stop)-1]++
	return stop
}

// Versions returns the versions of a dashboard that are kept, the newest first.
func (s *Store) Versions(ctx context.Context, name string) ([]Version, error) {
	h, _, err := s.head(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(h.Versions) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	return h.Versions, nil
}

// Get returns a version's document, the one in force for number 0.
func (s *Store) Get(ctx context.Context, name string, number int64) ([]byte, Version, error) {
	// A document that the head has just named may be gone: so many versions were saved since
	// that it is not kept any more. Then the head names others.
	for range 3 {
		h, _, err := s.head(ctx, name)
		if err != nil {
			return nil, Version{}, err
		}
		v, ok := h.find(number)
		if !ok {
			return nil, Version{}, fmt.Errorf("%w: %s", ErrNotFound, describe(name, number))
		}
		if err := memory.Reserve(ctx, 2*MaxBytes); err != nil { // the cell, and the block that it came in
			return nil, Version{}, err
		}
		document, err := s.cell(ctx, v.Row, documentColumn)
		if err != nil || document != nil {
			return document, v, err
		}
	}
	return nil, Version{}, fmt.Errorf("%w: %s", ErrNotFound, describe(name, number))
}

func describe(name string, number int64) string {
	if number == 0 {
		return name
	}
	return fmt.Sprintf("%s has no version %d, or keeps it no more", name, number)
}

// find returns a version that has a document, the one in force for 0.
func (h *head) find(number int64) (Version, bool) {
	if number == 0 {
		return h.now(), h.now().Version > 0 && !h.now().Deleted()
	}
	for _, v := range h.Versions {
		if v.Version == number {
			return v, !v.Deleted()
		}
	}
	return Version{}, false
}

// Put saves a document that was made from version from, 0 for a new dashboard. If another
// version is in force it returns a *ConflictError.
func (s *Store) Put(ctx context.Context, name string, from int64, document []byte, by string) (Version, error) {
	if err := CheckName(name); err != nil {
		return Version{}, err
	}
	summary, err := Check(document)
	if err != nil {
		return Version{}, err
	}
	return s.change(ctx, name, from, document, Version{By: by, Summary: summary})
}

// Delete removes a dashboard whose version in force is from. Its versions are kept.
func (s *Store) Delete(ctx context.Context, name string, from int64, by string) error {
	_, err := s.change(ctx, name, from, nil, Version{By: by})
	return err
}

// change makes a new version, with a document unless it is a deletion.
func (s *Store) change(ctx context.Context, name string, from int64, document []byte, v Version) (Version, error) {
	h, old, err := s.head(ctx, name)
	if err != nil {
		return v, err
	}
	if !h.is(from) {
		return v, &ConflictError{name, from, h.now()}
	}

	v.Version, v.Saved = h.now().Version+1, s.Now().UTC()
	if document != nil {
		v.Row = documentKey(name, v.Version)
		put := store.Mutation{
			Kind:      store.Put,
			Row:       []byte(v.Row),
			Family:    Family,
			Qualifier: []byte(documentColumn),
			Value:     document,
		}
		if err := s.Cells.Apply(ctx, s.Table, []store.Mutation{put}); err != nil {
			return v, s.explained(err)
		}
	}

	next := &head{Versions: append([]Version{v}, h.Versions[:min(len(h.Versions), Kept-1)]...)}
	value, err := json.Marshal(next)
	if err != nil {
		return v, err
	}
	cell := store.CellKey{Row: []byte(headPrefix + name), Family: Family, Qualifier: []byte(headColumn)}
	saved, fault := s.Cells.CompareAndPut(ctx, s.Table, cell, old, value)
	if !saved {
		// After an error it may be saved nevertheless, or will be: then the head is ours, whose
		// document nobody else's names.
		is, current, err := s.head(ctx, name)
		switch {
		case err == nil && bytes.Equal(current, value):
		case fault != nil:
			return v, s.explained(fault)
		case err != nil:
			return v, err
		default:
			s.remove(ctx, v.Row)
			return v, &ConflictError{name, from, is.now()}
		}
	}

	s.clean(ctx, name, next)
	return v, nil
}

// is reports whether from is the version in force, or 0 and there is none.
func (h *head) is(from int64) bool {
	now := h.now()
	if from == 0 {
		return now.Version == 0 || now.Deleted()
	}
	return now.Version == from && !now.Deleted()
}

// documentKey is a row that no other save uses: two may be making the same version.
func documentKey(name string, version int64) string {
	return fmt.Sprintf("%s%s/%016x-%s", documentPrefix, name, version, rand.Text())
}

// clean removes the documents that no kept version has: those of older versions, and of saves
// that came too late. A save under way has a later version than the head. What cannot be
// removed now will be after the next save.
func (s *Store) clean(ctx context.Context, name string, h *head) {
	named := map[string]bool{}
	for _, v := range h.Versions {
		named[v.Row] = true
	}
	prefix := documentPrefix + name + "/"
	var gone []string
	for row, err := range store.Rows(ctx, s.Cells, store.Scan{
		Table:    s.Table,
		Family:   Family,
		Start:    []byte(prefix),
		Stop:     after(prefix),
		KeysOnly: true,
	}) {
		if err != nil {
			return
		}
		number, _, _ := strings.Cut(strings.TrimPrefix(string(row.Key), prefix), "-")
		version, err := strconv.ParseInt(number, 16, 64)
		if err == nil && version <= h.now().Version && !named[string(row.Key)] {
			gone = append(gone, string(row.Key))
		}
	}
	s.remove(ctx, gone...)
}

// remove deletes documents.
func (s *Store) remove(ctx context.Context, rows ...string) {
	var mutations []store.Mutation
	for _, row := range rows {
		if row != "" {
			mutations = append(mutations, store.Mutation{Kind: store.DeleteRow, Row: []byte(row), Family: Family})
		}
	}
	if len(mutations) > 0 {
		_ = s.Cells.Apply(ctx, s.Table, mutations) // the next save's clean finds them
	}
}

// head reads a dashboard's head: the versions, and the bytes that a change is compared with,
// nil for a dashboard that never was.
func (s *Store) head(ctx context.Context, name string) (*head, []byte, error) {
	value, err := s.cell(ctx, headPrefix+name, headColumn)
	if err != nil || value == nil {
		return new(head), nil, err
	}
	h := new(head)
	if err := json.Unmarshal(value, h); err != nil {
		return nil, nil, fmt.Errorf("table %s, row %s%s: %w", s.Table, headPrefix, name, err)
	}
	return h, value, nil
}

func parseHead(row store.Row) (*head, error) {
	h := new(head)
	for _, c := range row.Cells {
		if string(c.Qualifier) != headColumn {
			continue
		}
		if err := json.Unmarshal(c.Value, h); err != nil {
			return nil, fmt.Errorf("row %s: %w", row.Key, err)
		}
	}
	return h, nil
}

// cell returns the value of a cell, nil if there is none.
func (s *Store) cell(ctx context.Context, row, column string) ([]byte, error) {
	rows, err := s.Cells.Get(ctx, s.Table, Family, [][]byte{[]byte(row)})
	if err != nil {
		return nil, s.explained(err)
	}
	for _, r := range rows {
		for _, c := range r.Cells {
			if string(c.Qualifier) == column {
				return bytes.Clone(c.Value), nil
			}
		}
	}
	return nil, nil
}

// explained says of a missing table how it is made.
func (s *Store) explained(err error) error {
	if errors.Is(err, store.ErrNoTable) {
		return fmt.Errorf("dashboards are kept in table %s (DOWNPOUR_TABLE_STATE), which -create-tables makes: %w",
			s.Table, err)
	}
	return err
}
