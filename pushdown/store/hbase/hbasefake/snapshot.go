package hbasefake

import (
	"slices"

	"github.com/tsuna/gohbase/pb"
)

// snapshot is a table as it was: rows are never changed, so it shares them.
type snapshot struct {
	schema  *pb.TableSchema
	rows    []*row
	regions []regionState
}

// flushed is by how much a flush moves the read point.
const flushed = 3

// Snapshot takes a snapshot of a table, which flushes it.
func (c *Cluster) Snapshot(tableName, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tables[tableName]
	s := &snapshot{schema: t.schema, rows: slices.Clone(t.rows)}
	for _, r := range t.regions {
		if !r.offline {
			r.point += flushed
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

// CloneSnapshot makes a table of a snapshot, in place of one of that name. Of a
// table cloned under its own name the regions have the names of then, each is on
// the server of then, and its numbers go on where the snapshot was taken: so it
// is in HBase, but for the server, which the balancer draws.
func (c *Cluster) CloneSnapshot(tableName, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.snapshots[name]
	c.drop(tableName)
	t := &table{name: tableName, schema: s.schema, families: familiesOf(s.schema), rows: slices.Clone(s.rows)}
	for _, r := range s.regions {
		r.listed = listing{}
		r.point -= 2 // which opening adds
		t.regions = append(t.regions, &r)
		c.open(&r, r.server)
	}
	c.tables[tableName] = t
}

// RestoreSnapshot puts a table back to one of its snapshots. HBase's own numbers
// go up where a region is still there; here they start again, which is harder to
// see from outside. What hbase:meta said of a region stays until it is opened.
func (c *Cluster) RestoreSnapshot(tableName, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, t := c.snapshots[name], c.tables[tableName]
	before := t.regions
	t.schema, t.families, t.rows, t.regions = s.schema, familiesOf(s.schema), slices.Clone(s.rows), nil
	for _, r := range before {
		c.endScanners(r)
	}
	for _, r := range s.regions {
		r.listed = listing{}
		if i := slices.IndexFunc(before, func(old *regionState) bool { return old.id == r.id }); i >= 0 {
			r.listed = before[i].listed
		}
		r.point -= 2
		t.regions = append(t.regions, &r)
		c.open(&r, r.server)
	}
}

// Truncate empties a table. Its regions are new ones, with the old borders if
// they are to be kept.
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
	slices.SortFunc(splits, slices.Compare)
	c.drop(tableName)
	c.create(tableName, old.schema, splits)
}

// MergeRegions joins the region of key and the one behind it; the last region of
// a table stays as it is.
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

// familiesOf names the families of a table.
func familiesOf(schema *pb.TableSchema) map[string]bool {
	families := map[string]bool{}
	for _, f := range schema.ColumnFamilies {
		families[string(f.Name)] = true
	}
	return families
}
