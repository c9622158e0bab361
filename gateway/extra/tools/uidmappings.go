package tools

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// uidsAtOnce bounds the names whose cells are read or changed in one call.
const uidsAtOnce = 1000

// mapping is what the UID table says of a name and its UID. A cell without a value is not there.
type mapping struct {
	forward, reverse, meta store.Cell
}

// agrees reports whether the name has the UID, and the UID is nobody else's.
func (m *mapping) agrees(n *doomed) bool {
	return bytes.Equal(m.forward.Value, n.uid()) && m.leadsBack(n)
}

// leadsBack reports whether the UID leads back to the name, or to nothing: then it is nobody else's.
func (m *mapping) leadsBack(n *doomed) bool {
	return m.reverse.Value == nil || bytes.Equal(m.reverse.Value, n.forward().Row)
}

// mappings reads the cells of some names.
func (d *deletion) mappings(ctx context.Context, names []*doomed) ([]mapping, error) {
	forward, reverse := make([][]byte, len(names)), make([][]byte, len(names))
	for i, n := range names {
		forward[i], reverse[i] = n.forward().Row, n.uid()
	}
	ids, err := d.uidCells(ctx, encoding.FamilyID, forward)
	if err != nil {
		return nil, err
	}
	back, err := d.uidCells(ctx, encoding.FamilyName, reverse)
	if err != nil {
		return nil, err
	}
	all := make([]mapping, len(names))
	for i, n := range names {
		q := n.Kind.String()
		all[i] = mapping{
			forward: ids[[2]string{string(forward[i]), q}],
			reverse: back[[2]string{n.UID, q}],
			meta:    back[[2]string{n.UID, string(n.Kind.MetaQualifier())}],
		}
	}
	return all, nil
}

// uidCells reads the cells of rows of the UID table, by row and column. Keys may repeat.
func (d *deletion) uidCells(ctx context.Context, family string, keys [][]byte) (map[[2]string]store.Cell, error) {
	keys = slices.Clone(keys)
	slices.SortFunc(keys, bytes.Compare)
	rows, err := d.Store.Get(ctx, d.Tables.UID, family, slices.CompactFunc(keys, bytes.Equal))
	if err != nil {
		return nil, fmt.Errorf("%v: %w", d, err)
	}
	cells := map[[2]string]store.Cell{}
	for _, r := range rows {
		for _, c := range r.Cells {
			cells[[2]string{string(r.Key), string(c.Qualifier)}] = c.Clone()
		}
	}
	return cells, nil
}

// each calls work with some names at a time and what the table says of them now.
func (d *deletion) each(
	ctx context.Context, names []*doomed, work func(names []*doomed, now []mapping) error,
) error {
	for part := range slices.Chunk(names, uidsAtOnce) {
		now, err := d.mappings(ctx, part)
		if err == nil {
			err = work(part, now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reread notes which names have changed since the caller read them. What a killed deletion has left becomes a name
// with its UID again, and is then deleted as any other: so it does not matter if somebody is about to put under it.
func (d *deletion) reread(ctx context.Context) error {
	return d.each(ctx, d.with(doom), func(names []*doomed, now []mapping) error {
		var again []*doomed
		for i, n := range names {
			if n.leftover && now[i].forward.Value == nil && now[i].reverse.Value != nil && now[i].leadsBack(n) {
				again = append(again, n)
			} else if !now[i].agrees(n) {
				n.fate = changed
			}
		}
		return d.putForward(ctx, again)
	})
}

// putForward writes the forward mappings of names that have none. A name that has got one has changed.
func (d *deletion) putForward(ctx context.Context, names []*doomed) error {
	cells, uids := make([]store.CellKey, len(names)), make([][]byte, len(names))
	for i, n := range names {
		cells[i], uids[i] = n.forward(), n.uid()
	}
	wrote, err := store.PutAbsent(ctx, d.Store, d.Tables.UID, cells, uids)
	if err != nil {
		return fmt.Errorf("%v: %w", d, err)
	}
	for i, n := range names {
		if !wrote[i] {
			n.fate = changed
		}
	}
	return nil
}

// removeForward removes the forward mappings.
func (d *deletion) removeForward(ctx context.Context) error {
	return d.each(ctx, d.with(doom), func(names []*doomed, now []mapping) error {
		var cells []store.Mutation
		for i, n := range names {
			if now[i].agrees(n) {
				cells = append(cells, deleteVersion(n.forward(), now[i].forward))
			} else {
				n.fate = changed
			}
		}
		return d.apply(ctx, cells)
	})
}

// deleteVersion deletes a cell as it was read: on HBase, where others may write it too, a later version stays.
func deleteVersion(at store.CellKey, read store.Cell) store.Mutation {
	return store.Mutation{
		Kind:      store.DeleteCell,
		Row:       at.Row,
		Family:    at.Family,
		Qualifier: at.Qualifier,
		Timestamp: read.Timestamp, //fault:uid-deleted-as-others-have-put-it TestReclaim_othersChange
	}
}

func (d *deletion) apply(ctx context.Context, cells []store.Mutation) error {
	if len(cells) == 0 {
		return nil
	}
	if err := d.Store.Apply(ctx, d.Tables.UID, cells); err != nil {
		return fmt.Errorf("%v: %w (run it again)", d, err)
	}
	return nil
}

// removeReverse removes the reverse mappings and the UIDMeta objects. A UID whose number could be given again keeps its
// mapping, which keeps everybody from giving it: no counter has come to it, or it was drawn at random.
func (d *deletion) removeReverse(ctx context.Context) error {
	counters, err := d.Names.Counters(ctx)
	if err != nil {
		return err
	}
	return d.each(ctx, d.with(doom), func(names []*doomed, now []mapping) error {
		var cells []store.Mutation
		var going []*doomed
		for i, n := range names {
			// Somebody has given the name its UID back, or the UID to another name.
			back := bytes.Equal(now[i].forward.Value, n.uid())
			if back || !now[i].leadsBack(n) { //fault:uid-deleted-although-given-back TestReclaim_othersChange
				n.fate = changed
				continue
			}
			going = append(going, n)
			if now[i].meta.Value != nil {
				n.meta = true
				at := n.reverse()
				at.Qualifier = n.Kind.MetaQualifier()
				cells = append(cells, deleteVersion(at, now[i].meta))
			}
			kept := d.drawn[n.Kind] || encoding.UIDNumber(n.uid()) > uint64(counters.Given[n.Kind])
			if now[i].reverse.Value != nil && !kept { //fault:uid-number-given-again TestReclaim_stays
				cells = append(cells, deleteVersion(n.reverse(), now[i].reverse))
			}
		}
		if err := d.apply(ctx, cells); err != nil {
			return err
		}
		for _, n := range going {
			n.fate = gone
		}
		return nil
	})
}

// restoreFor bounds restore.
const restoreFor = 30 * time.Second

// restore gives names their UIDs again, even if the context has ended. The reverse mapping comes first, if that was
// removed.
func (d *deletion) restore(ctx context.Context, names []*doomed) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreFor)
	defer cancel()

	return d.each(ctx, names, func(names []*doomed, now []mapping) error {
		var cells [2][]store.CellKey
		var values [2][][]byte
		add := func(order int, at store.CellKey, value []byte) {
			cells[order], values[order] = append(cells[order], at), append(values[order], value)
		}
		for i, n := range names {
			if now[i].reverse.Value == nil {
				add(0, n.reverse(), n.forward().Row)
			}
			if now[i].forward.Value == nil && now[i].leadsBack(n) {
				add(1, n.forward(), n.uid())
			}
		}
		for i := range cells {
			if _, err := store.PutAbsent(ctx, d.Store, d.Tables.UID, cells[i], values[i]); err != nil {
				return fmt.Errorf("%v: a UID is not given back: %w", d, err)
			}
		}

		now, err := d.mappings(ctx, names)
		if err != nil {
			return err
		}
		for i, n := range names {
			// Somebody has put under the name and so assigned it another UID.
			if n.fate == inUse && !bytes.Equal(now[i].forward.Value, n.uid()) {
				n.fate, n.now = replaced, now[i].forward.Value
			}
		}
		return nil
	})
}
