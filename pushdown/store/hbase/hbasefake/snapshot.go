package hbasefake

import (
	"maps"
	"slices"

	"github.com/tsuna/gohbase/pb"
)

// snapshot is a table as it was. It shares the table's rows, which are never
// changed.
type snapshot struct {
	schema   *pb.TableSchema
	rows     []*row
	versions map[string][]stored // as those of the table
	regions  []regionState
}

// flushChanges is by how much a flush raises the read point.
const flushChanges = 3

// openingChanges is by how much an opening raises the read point, see openRegion.
const openingChanges = 2

// Snapshot takes a snapshot of a table, which flushes it.
func (c *Cluster) Snapshot(tableName, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tables[tableName]
	t.flushVersions()

	s := &snapshot{schema: t.schema, rows: slices.Clone(t.rows), versions: cloneVersions(t.versions)}
	for _, r := range t.regions {
		if !r.offline {
			r.point += flushChanges
			s.regions = append(s.regions, *r)
		}
	}

	c.snapshots[name] = s
}

// DropTable deletes a table.
func (c *Cluster) DropTable(tableName string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(tableName)
}

func (c *Cluster) drop(tableName string) {
	if t := c.tables[tableName]; t != nil {
		for _, r := range t.regions {
			c.endScanners(r)
		}
	}
	delete(c.tables, tableName)
	c.catalogPoint++
}

// CloneSnapshot creates a table from a snapshot, in place of one of that name. If
// the name is that of the snapshot's table, each region has its old name and its
// old server, and its numbers continue from those of the snapshot. So does HBase,
// except for the server, which the balancer chooses.
func (c *Cluster) CloneSnapshot(tableName, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.snapshots[name]
	c.drop(tableName)

	t := &table{
		name:     tableName,
		schema:   s.schema,
		families: familiesOf(s.schema),
		rows:     slices.Clone(s.rows),
		versions: cloneVersions(s.versions),
	}
	// Each r is a copy, so the snapshot stays as it is.
	for _, r := range s.regions {
		r.meta = metaEntry{}
		r.point -= openingChanges // opening raises it to the snapshot's again
		t.regions = append(t.regions, &r)
		c.openRegion(&r, r.server)
	}

	c.tables[tableName] = t
}

// RestoreSnapshot sets a table back to one of its snapshots. In HBase the numbers
// of a region that is still there go up; here they start from the snapshot's again,
// which is harder to notice from outside. The row of a region in hbase:meta stays
// until the region is opened.
func (c *Cluster) RestoreSnapshot(tableName, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, t := c.snapshots[name], c.tables[tableName]
	before := t.regions
	t.schema = s.schema
	t.families = familiesOf(s.schema)
	t.rows = slices.Clone(s.rows)
	t.versions = cloneVersions(s.versions)
	t.regions = nil
	for _, r := range before {
		c.endScanners(r)
	}

	// Each r is a copy, so the snapshot stays as it is.
	for _, r := range s.regions {
		r.meta = metaEntry{}
		if i := slices.IndexFunc(before, func(old *regionState) bool { return old.id == r.id }); i >= 0 {
			r.meta = before[i].meta
		}
		r.point -= openingChanges // opening raises it to the snapshot's again
		t.regions = append(t.regions, &r)
		c.openRegion(&r, r.server)
	}
}

// cloneVersions copies the versions of a table that keeps them, nil of another.
func cloneVersions(versions map[string][]stored) map[string][]stored {
	all := maps.Clone(versions)
	for key, list := range all {
		all[key] = slices.Clone(list)
	}
	return all
}

// Truncate deletes all rows of a table. It gets new regions, with the old boundaries
// if preserveSplits is set, else a single one.
func (c *Cluster) Truncate(tableName string, preserveSplits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.tables[tableName]
	var splits [][]byte
	for _, r := range old.regions {
		if preserveSplits && !r.offline && len(r.start) > 0 {
			splits = append(splits, r.start)
		}
	}

	// Splits and merges have left the regions in another order.
	slices.SortFunc(splits, slices.Compare)

	c.drop(tableName)
	c.create(tableName, old.schema, splits)
	if old.versions != nil {
		c.tables[tableName].versions = map[string][]stored{}
	}
}

// MergeRegions merges the region of key and the next one. It does nothing if there
// is no next one.
func (c *Cluster) MergeRegions(tableName string, key []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tables[tableName]
	left := t.regionOf(key)
	if len(left.stop) == 0 {
		return
	}

	right := t.regionOf(left.stop)
	t.regions = slices.DeleteFunc(t.regions, func(r *regionState) bool { return r == left || r == right })
	c.endScanners(left)
	c.endScanners(right)
	t.regions = append(t.regions, c.newRegion(t, left.start, right.stop, left.server))
}

// familiesOf returns the names of a table's families.
func familiesOf(schema *pb.TableSchema) map[string]bool {
	families := map[string]bool{}
	for _, f := range schema.ColumnFamilies {
		families[string(f.Name)] = true
	}
	return families
}
