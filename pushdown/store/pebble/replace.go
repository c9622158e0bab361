package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"downpour/pushdown/store"
)

// Replace changes rows one after another. No other write becomes visible between the
// comparison of a row and its change.
func (s *Store) Replace(ctx context.Context, table, family string, changes []store.Replacement) (
	[]store.Outcome, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.life.RUnlock()
	if family == "" {
		return nil, errors.New("replace: family is empty")
	}
	if err := s.tables.check(table, family); err != nil {
		return nil, err
	}

	outcomes := make([]store.Outcome, len(changes)) // store.Changed, unless set
	var visible []*batch
	var failed error
	for i := range changes {
		b, err := s.replaceRow(table, family, &changes[i])
		if err != nil {
			failed = fmt.Errorf("replace in table %q: %w", table, err)
			break
		}
		if b != nil {
			visible = append(visible, b)
			outcomes[i] = store.Replaced
		}
	}

	// All wait for the disk together, also after a failure: what is visible may be read.
	for _, b := range visible {
		failed = errors.Join(failed, s.awaitDurable(b))
	}
	return outcomes, failed
}

// replaceRow changes a row if it is as it was read. It returns the batch that it has made
// visible, nil for none.
func (s *Store) replaceRow(table, family string, r *store.Replacement) (*batch, error) {
	s.change.Lock()
	defer s.change.Unlock()

	same, err := s.holds(table, family, r.Read)
	if err != nil || !same {
		return nil, err
	}

	b := s.newBatch(0)
	mutations := make([]store.Mutation, 0, len(r.Put)+len(r.Delete))
	for _, c := range r.Put {
		mutations = append(mutations, store.Mutation{
			Kind:      store.Put,
			Row:       r.Read.Key,
			Family:    family,
			Qualifier: c.Qualifier,
			Value:     c.Value,
			Timestamp: c.Timestamp,
		})
	}
	for _, c := range r.Delete {
		mutations = append(mutations, store.Mutation{
			Kind:      store.DeleteCell,
			Row:       r.Read.Key,
			Family:    family,
			Qualifier: c.Qualifier,
		})
	}

	for _, m := range mutations {
		if err := s.addMutation(b, table, m); err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}

	if err := s.makeVisible(b); err != nil {
		return nil, err
	}
	return b, nil
}

// holds reports whether a row's cells of a family are those that were read.
func (s *Store) holds(table, family string, read store.Row) (same bool, err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{
		LowerBound: appendPrefix(nil, table, nil),
		UpperBound: appendTableEnd(nil, table),
	})
	if err != nil {
		return false, unreadable(err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()

	g := getter{it: it, table: table, columns: columns{family: family}}
	if err := g.readRow(read.Key); err != nil {
		return false, err
	}

	var now []store.Cell
	if len(g.block.rows) > 0 { // else the row does not exist
		now = g.block.rows[0].Cells
	}
	return slices.EqualFunc(now, read.Cells, func(a, b store.Cell) bool {
		return a.Timestamp == b.Timestamp && bytes.Equal(a.Qualifier, b.Qualifier) && bytes.Equal(a.Value, b.Value)
	}), nil
}
