package pebble

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"downpour/pushdown/store"
)

// batch collects changes that become visible and durable together. Its methods
// write keys and values straight into pebble's buffer.
type batch struct {
	*pebble.Batch
	rows     *rowSketch
	appended int // appends in it
	repeats  int // of them, those to rows that the memtable has appends of
	bytes    int // its size, set when it becomes visible; not of one that deletes ranges of rows
}

// newBatch returns a batch with room for about so many bytes.
func (s *Store) newBatch(bytes int) *batch {
	return &batch{Batch: s.db.NewBatchWithSize(bytes), rows: &s.early.rows}
}

// put sets a cell.
func (b *batch) put(table string, row []byte, family string, qualifier []byte, ms int64, value []byte) {
	op := b.SetDeferred(prefixLen(table, row)+suffixLen(family, qualifier), putHeader+len(value))
	appendKey(op.Key[:0], table, row, family, qualifier)
	fillPut(op.Value, ms)
	copy(op.Value[putHeader:], value)
	_ = op.Finish() // fails for indexed batches only
}

// append adds to a cell's end.
func (b *batch) append(table string, m store.Mutation) {
	op := b.MergeDeferred(prefixLen(table, m.Row)+suffixLen(m.Family, m.Qualifier), 1+len(m.Value))
	appendKey(op.Key[:0], table, m.Row, m.Family, m.Qualifier)
	op.Value[0] = tagAppend
	copy(op.Value[1:], m.Value)
	if b.appended++; b.rows.add(op.Key) {
		b.repeats++
	}
	_ = op.Finish() // fails for indexed batches only
}

// deleteCell removes a cell.
func (b *batch) deleteCell(table string, m store.Mutation) {
	op := b.DeleteDeferred(prefixLen(table, m.Row) + suffixLen(m.Family, m.Qualifier))
	appendKey(op.Key[:0], table, m.Row, m.Family, m.Qualifier)
	_ = op.Finish() // fails for indexed batches only
}

// deleteRow removes all cells of one family of a row.
func (b *batch) deleteRow(table string, m store.Mutation) error {
	first := appendKey(nil, table, m.Row, m.Family, nil)
	return b.DeleteRange(first, appendFamilyEnd(nil, table, m.Row, m.Family), nil)
}

// Apply writes mutations in their order, all of them or none, and returns after
// fsync; concurrent calls share one. The context counts only at the start: a write
// that has begun ends with the disk.
func (s *Store) Apply(ctx context.Context, table string, mutations []store.Mutation) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.life.RUnlock()

	b := s.newBatch(batchBytes(table, mutations))
	for i := range mutations {
		if err := s.addMutation(b, table, mutations[i]); err != nil {
			return errors.Join(fmt.Errorf("table %q, mutation %d of %d: %w", table, i, len(mutations), err), b.Close())
		}
	}
	return s.commit(b)
}

// batchBytes estimates the size of a batch, so that its buffer need not grow: what
// is added are the batch's header, and per change its kind and two lengths.
func batchBytes(table string, mutations []store.Mutation) int {
	n := 16
	for i := range mutations {
		m := &mutations[i]
		n += prefixLen(table, m.Row) + suffixLen(m.Family, m.Qualifier) + putHeader + len(m.Value) + 12
	}
	return n
}

// addMutation adds one mutation to b. Only a put has a write time: an appended value
// keeps none, and a deletion removes whatever is there.
func (s *Store) addMutation(b *batch, table string, m store.Mutation) error {
	if err := s.checkPlace(table, m.Row, m.Family, m.Qualifier); err != nil {
		return err
	}

	switch m.Kind {
	case store.Put:
		ms, err := writeTime(m.Timestamp, s.opts.Now)
		if err != nil {
			return fmt.Errorf("row %x: %w", m.Row, err)
		}
		b.put(table, m.Row, m.Family, m.Qualifier, ms, m.Value)
	case store.Append:
		b.append(table, m)
	case store.DeleteCell:
		b.deleteCell(table, m)
	case store.DeleteRow:
		return b.deleteRow(table, m)
	default:
		return fmt.Errorf("row %x: mutation kind is %d, want 0 to %d", m.Row, m.Kind, store.DeleteRow)
	}
	return nil
}

// checkPlace checks that a cell can be written: its table has the family, and its key is
// neither empty nor too long.
func (s *Store) checkPlace(table string, row []byte, family string, qualifier []byte) error {
	// Without a name, tables.check would ask only for the table.
	if family == "" {
		return fmt.Errorf("row %x: family is empty", row)
	}
	if err := s.tables.check(table, family); err != nil {
		return err
	}
	return checkCell(row, family, qualifier)
}

// commit makes b visible, then waits until it is durable.
func (s *Store) commit(b *batch) error {
	s.change.RLock()
	err := s.makeVisible(b)
	s.change.RUnlock()
	if err != nil {
		return err
	}
	return s.awaitDurable(b) //fault:ack-before-sync TestCrash
}

// makeVisible writes b to the memtable and queues its record for the log. The
// record comes before those of batches that become visible later, so none of them
// is durable without it. The caller holds s.change.
func (s *Store) makeVisible(b *batch) error {
	if err := s.Writable(); err != nil {
		return errors.Join(err, b.Close())
	}

	// All of this before pebble may take a large batch's memory for itself.
	var groups []string
	if s.changes.on.Load() || s.marks.on.Load() {
		groups = s.changes.groupNames(b.Batch)
	}
	s.marks.note(b, groups)
	b.bytes = b.Len()
	// No version token may be given while the batch is becoming visible.
	defer s.changes.begin(groups)()
	if err := s.watches.apply(s.db, b.Batch); err != nil {
		return errors.Join(fmt.Errorf("cannot write %d bytes: %w", b.bytes, err), b.Close())
	}
	return nil
}

// awaitDurable waits until a visible batch is on disk. A failed log write ends the
// process, as it does where pebble itself meets the error: what of the batch is on
// disk is unknown, and readers may have seen it.
func (s *Store) awaitDurable(b *batch) error {
	if err := b.SyncWait(); err != nil {
		s.log.Fatalf("log write: %v", err)
		return fmt.Errorf("log write: %w", err) // not reached, see Options.Exit
	}
	s.early.wrote(b)
	return b.Close()
}
