package hbase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"downpour/pushdown/process/wait"
	"downpour/pushdown/store"
)

// Replace changes rows while others write to them:
//
//  1. After a moment the rows are read. Those that have changed since they were read before are
//     not changed.
//  2. The new cells are put, each with the timestamp of the newest cell that it replaces, on condition that the row has
//     as many columns as were read and no other timestamp. Servers before HBase 2.4 know no such condition: there they
//     are put without.
//  3. The rows are read again. A row continues only if it has the new cells and otherwise is
//     as before.
//  4. The old cells are deleted, each up to its own timestamp.
//  5. Where some were, the rows are read once more. A row that has another cell which is no newer than what was read
//     counts as changed: a row compaction has put it between steps 3 and 4, of cells that it had read before, so that
//     what was deleted may be in it. Nothing is lost by that, and the next run deletes it.
//
// Why no write of another is lost:
//
//   - After the wait before step 1 the server's clock has passed all timestamps of Read.
//     A write with one of these is seen in step 1, and the row has changed;
//     a later write has a later timestamp. So it stays in front of the puts of step 2,
//     and step 4 does not reach it. A cell that was written over, or deleted alone, between steps 1 and 2 is no part of
//     the puts of step 2, as the condition is false then. Without a condition it may be: a deleted value comes back,
//     and an older one is next to the newer one. A deleted row comes back only if a major compaction has dropped the
//     marker.
//   - Step 3 sees what came in between. Such a row keeps its old cells.
//   - A deletion of an earlier time may hide what step 2 puts, for ever if a major
//     compaction comes. Step 3 sees that, and nothing is deleted.
//   - If the process ends in between, the row has its old cells and perhaps the new ones:
//     the same values twice. Readers take those for one if they have the same length. If
//     a new cell has a value in another length (an integer written shorter), readers that
//     do not resolve duplicates answer with an error, between steps 2 and 4 and after such
//     an end, until the next run. It is the same if step 3 drops the row.
//   - Two jobs that replace the same row put their cells with the same timestamps. Only a job
//     that still sees all old cells in step 3 continues, and both may: then they delete the
//     same cells, and each job has put or seen the values of these.
//
// The timestamps must be the servers'. Writers that set their own (OpenTSDB with
// use_otsdb_timestamp) write a point again with the timestamp that it had: what they put
// between steps 3 and 4 in a column that is deleted is lost, and later it is hidden by the
// deletion until a major compaction, as after OpenTSDB's own row compaction.
func (st *Store) Replace(ctx context.Context, table, family string,
	changes []store.Replacement) ([]store.Outcome, error) {
	r := &replacer{
		rows:     st,
		table:    table,
		family:   family,
		changes:  changes,
		outcomes: make([]store.Outcome, len(changes)),
		moment:   func(ctx context.Context) error { return wait.For(ctx, waitAfterDelete) },
	}
	return r.outcomes, r.run(ctx)
}

// rowStore is what replacing needs of a store.
type rowStore interface {
	Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error)
	Apply(ctx context.Context, table string, mutations []store.Mutation) error
	ChangeIf(ctx context.Context, table, family string, changes []store.ConditionalChange) ([]bool, error)
}

// replacer replaces cells of rows.
type replacer struct {
	rows          rowStore
	table, family string
	changes       []store.Replacement
	outcomes      []store.Outcome
	live          []int // indexes of the changes that continue
	// moment waits until the server's clock has passed the timestamps that were read.
	moment func(ctx context.Context) error
}

// run carries out the steps that Replace lists. Each of them drops from live the changes that do
// not continue.
func (r *replacer) run(ctx context.Context) error {
	for i := range r.changes {
		if datable(&r.changes[i]) {
			r.live = append(r.live, i)
		} else {
			r.outcomes[i] = store.Undatable
		}
	}

	// From then on every write has a later timestamp than the puts and deletions here.
	if err := r.moment(ctx); err != nil {
		return err
	}
	if err := r.compare(ctx, func(c *store.Replacement) []store.Cell { return c.Read.Cells }); err != nil {
		return err
	}
	if err := r.put(ctx); err != nil {
		return err
	}

	// A row that others have changed, or in which the put is hidden, keeps its old cells.
	if err := r.compare(ctx, afterPut); err != nil {
		return err
	}
	if err := r.apply(ctx, store.DeleteCell); err != nil {
		return err
	}
	if err := r.dropCompacted(ctx); err != nil {
		return err
	}

	for _, i := range r.live {
		r.outcomes[i] = store.Replaced
	}
	return nil
}

// datable reports whether all cells of a change have a time of writing. Without one a deletion has
// no upper bound in time, and would also remove concurrent writes.
func datable(c *store.Replacement) bool {
	timeless := func(x store.Cell) bool { return x.Timestamp <= 0 }
	return !slices.ContainsFunc(c.Put, timeless) && !slices.ContainsFunc(c.Delete, timeless)
}

// compare reads the live rows and drops those whose cells do not satisfy wanted. The
// outcome of those is store.Hidden, or stays store.Changed.
func (r *replacer) compare(ctx context.Context, wanted func(*store.Replacement) []store.Cell) error {
	now, err := r.readAgain(ctx)
	if err != nil {
		return err
	}

	r.live = slices.DeleteFunc(r.live, func(i int) bool {
		c := &r.changes[i]
		cells := now[string(c.Read.Key)]
		if sameCells(cells, wanted(c)) {
			return false
		}
		if hidden(c, cells) {
			r.outcomes[i] = store.Hidden
		}
		return true
	})
	return nil
}

// dropCompacted drops from live the rows in which a row compaction has put a cell that may hold what
// was deleted: one that is no newer than the cells that were read, and none of the rest of those.
// Other writers use the current time.
func (r *replacer) dropCompacted(ctx context.Context) error {
	deletes := func(i int) bool { return len(r.changes[i].Delete) > 0 }
	if !slices.ContainsFunc(r.live, deletes) {
		return nil
	}
	now, err := r.readAgain(ctx)
	if err != nil {
		return err
	}

	r.live = slices.DeleteFunc(r.live, func(i int) bool {
		c := &r.changes[i]
		newest := int64(0)
		for _, x := range c.Read.Cells {
			newest = max(newest, x.Timestamp)
		}
		expected := byQualifier(afterPut(c))
		for _, x := range c.Delete {
			delete(expected, string(x.Qualifier))
		}

		return deletes(i) && slices.ContainsFunc(now[string(c.Read.Key)], func(x store.Cell) bool {
			return x.Timestamp <= newest && !sameCell(expected[string(x.Qualifier)], x)
		})
	})
	return nil
}

// put puts the new cells of the live rows, on condition that a row is as it was read, and drops from live the rows that
// are not. Servers before HBase 2.4 put without the condition; the comparison that follows finds most of what came in
// between, see Replace.
func (r *replacer) put(ctx context.Context) error {
	var puts []int
	for _, i := range r.live {
		if len(r.changes[i].Put) > 0 {
			puts = append(puts, i)
		}
	}
	if len(puts) == 0 {
		return nil
	}
	// ChangeIf wants rows in ascending order.
	slices.SortFunc(puts, func(a, b int) int { return bytes.Compare(r.changes[a].Read.Key, r.changes[b].Read.Key) })

	changes := make([]store.ConditionalChange, len(puts))
	for k, i := range puts {
		c := &r.changes[i]
		changes[k] = store.ConditionalChange{Row: c.Read.Key, If: asRead(c.Read), Put: c.Put}
	}
	held, err := r.rows.ChangeIf(ctx, r.table, r.family, changes)
	if errors.Is(err, errUnconditional) {
		return r.apply(ctx, store.Put)
	}
	if err != nil {
		return err
	}

	changed := map[int]bool{}
	for k, i := range puts {
		changed[i] = !held[k]
	}
	r.live = slices.DeleteFunc(r.live, func(i int) bool { return changed[i] })
	return nil
}

// asRead is the condition that a row has the columns that were read, none of them written since.
func asRead(row store.Row) store.Condition {
	c := store.Condition{Columns: len(row.Cells)}
	for _, x := range row.Cells {
		c.Stamps = append(c.Stamps, x.Timestamp)
	}
	return c
}

// readAgain returns the cells of the live rows, by key.
func (r *replacer) readAgain(ctx context.Context) (map[string][]store.Cell, error) {
	keys := make([][]byte, len(r.live))
	for k, i := range r.live {
		keys[k] = r.changes[i].Read.Key
	}
	rows, err := r.rows.Get(ctx, r.table, r.family, keys)
	if err != nil {
		return nil, fmt.Errorf("cannot read %d rows again: %w", len(keys), err)
	}

	now := make(map[string][]store.Cell, len(rows))
	for _, row := range rows {
		now[string(row.Key)] = row.Cells
	}
	return now, nil
}

// afterPut returns the cells that a row has once its new cells are put.
func afterPut(c *store.Replacement) []store.Cell {
	put := byQualifier(c.Put)
	var cells []store.Cell
	for _, x := range c.Read.Cells {
		if _, ok := put[string(x.Qualifier)]; !ok {
			cells = append(cells, x)
		}
	}

	cells = append(cells, c.Put...)
	// Get returns them in this order.
	slices.SortFunc(cells, func(a, b store.Cell) int { return bytes.Compare(a.Qualifier, b.Qualifier) })
	return cells
}

func byQualifier(cells []store.Cell) map[string]store.Cell {
	by := make(map[string]store.Cell, len(cells))
	for _, x := range cells {
		by[string(x.Qualifier)] = x
	}
	return by
}

// hidden reports whether a row has all cells that were read, and not those put: an earlier deletion
// hides these, see Replace.
func hidden(c *store.Replacement, cells []store.Cell) bool {
	now := byQualifier(cells)
	for _, x := range c.Read.Cells {
		if !sameCell(now[string(x.Qualifier)], x) {
			return false
		}
	}
	return len(cells) == len(c.Read.Cells)
}

func sameCells(a, b []store.Cell) bool { return slices.EqualFunc(a, b, sameCell) }

func sameCell(a, b store.Cell) bool {
	return a.Timestamp == b.Timestamp && bytes.Equal(a.Qualifier, b.Qualifier) && bytes.Equal(a.Value, b.Value)
}

// changeMarker is the qualifier of a column that never exists. A deletion of it, stamped by
// the server now, shows the change to readers that find changes by timestamps: the cells
// that Replace puts and deletes have old ones, see package unchanged.
var changeMarker = []byte{0xff}

// apply puts or deletes the cells of the live changes. The deletions of a row and a change
// marker are one operation. Puts have an operation of their own, so that markers come
// before it, in case this process ends in between, and after it, because it may take long.
func (r *replacer) apply(ctx context.Context, kind store.MutationKind) error {
	var mutations []store.Mutation
	for _, i := range r.live {
		c := &r.changes[i]
		cells := c.Put
		if kind == store.DeleteCell {
			cells = c.Delete
		}
		if len(cells) == 0 {
			continue
		}

		marker := store.Mutation{Kind: store.DeleteCell, Row: c.Read.Key, Family: r.family, Qualifier: changeMarker}
		if kind == store.Put {
			mutations = append(mutations, marker)
		}
		for _, x := range cells {
			mutations = append(mutations, store.Mutation{
				Kind:      kind,
				Row:       c.Read.Key,
				Family:    r.family,
				Qualifier: x.Qualifier,
				Timestamp: x.Timestamp,
				Value:     x.Value, // a deletion needs none
			})
		}
		mutations = append(mutations, marker)
	}

	return r.rows.Apply(ctx, r.table, mutations)
}
