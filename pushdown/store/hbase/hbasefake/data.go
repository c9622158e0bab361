package hbasefake

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/tsuna/gohbase/pb"
)

const (
	metaName   = "hbase:meta"
	metaRegion = "hbase:meta,,1"
)

// table is a table with all its rows, in key order. Its regions only divide the
// keys.
type table struct {
	name     string
	schema   *pb.TableSchema
	families map[string]bool
	rows     []*row
	regions  []*regionState
	disabled bool
	log      []logged            // puts and deletions, oldest first
	versions map[string][]stored // by row key; nil if only the latest cells are kept
}

// logged is a put or a deletion, as a raw scan finds it.
type logged struct {
	key     []byte
	cell    cell
	deletes bool
}

// row is never changed: a write puts another one in its place, so that a scanner
// may keep the old one.
type row struct {
	key   []byte
	cells []cell // by family, then qualifier
}

type cell struct {
	family, qualifier, value []byte
	timestamp                int64
	mark                     byte // type of a deletion; 0 for a put
}

// regionState is a region as hbase:meta and its server see it.
type regionState struct {
	id          uint64
	name        []byte
	start, stop []byte
	server      int
	offline     bool   // the parent of a split
	number      uint64 // of the last opening
	point       uint64 // MVCC read point: the number of the last change
	meta        metaEntry
	files       []string // of its store, see Flush
}

func (r *regionState) contains(key []byte) bool {
	return bytes.Compare(key, r.start) >= 0 && (len(r.stop) == 0 || bytes.Compare(key, r.stop) < 0)
}

func compareCells(a, b cell) int {
	return cmp.Or(bytes.Compare(a.family, b.family), bytes.Compare(a.qualifier, b.qualifier))
}

// find returns the index of key in the rows, or where it would be, and whether it
// is there.
func (t *table) find(key []byte) (int, bool) {
	return slices.BinarySearchFunc(t.rows, key, func(r *row, k []byte) int { return bytes.Compare(r.key, k) })
}

// get returns a row, empty if it does not exist.
func (t *table) get(key []byte) *row {
	if i, ok := t.find(key); ok {
		return t.rows[i]
	}
	return &row{key: bytes.Clone(key)}
}

// set replaces a row; a row without cells is deleted.
func (t *table) set(r *row) {
	i, found := t.find(r.key)
	switch {
	case len(r.cells) == 0 && found:
		t.rows = slices.Delete(t.rows, i, i+1)
	case len(r.cells) == 0:
		// The row never existed.
	case found:
		t.rows[i] = r
	default:
		t.rows = slices.Insert(t.rows, i, r)
	}
}

// copied returns a copy of r, which may be changed until it is put into a table.
func (r *row) copied() *row { return &row{r.key, slices.Clone(r.cells)} }

// put puts c into r, a copy, unless r has a cell of that column with a later
// timestamp.
func (r *row) put(c cell) *row {
	i, found := slices.BinarySearchFunc(r.cells, c, compareCells)
	switch {
	case found && r.cells[i].timestamp > c.timestamp:
		// One version is kept, the latest.
	case found:
		r.cells[i] = c
	default:
		r.cells = slices.Insert(r.cells, i, c)
	}
	return r
}

// cell returns the cell of a column, nil if it is not there.
func (r *row) cell(family, qualifier []byte) *cell {
	i, found := slices.BinarySearchFunc(r.cells, cell{family: family, qualifier: qualifier}, compareCells)
	if !found {
		return nil
	}
	return &r.cells[i]
}

// newRegion returns a new region of t, opened by a server.
func (c *Cluster) newRegion(t *table, start, stop []byte, server int) *regionState {
	c.lastID++
	r := &regionState{
		id:    c.lastID,
		name:  fmt.Appendf(nil, "%s,%s,%d.0123456789abcdef0123456789abcdef.", t.name, start, c.lastID),
		start: start,
		stop:  stop,
	}
	c.openRegion(r, server)
	return r
}

// CreateTable creates a table with regions divided at splits, which the servers hold in rotation.
func (c *Cluster) CreateTable(name string, families []string, splits ...[]byte) {
	schema := &pb.TableSchema{TableName: &pb.TableName{Namespace: []byte("default"), Qualifier: []byte(name)}}
	for _, f := range families {
		schema.ColumnFamilies = append(schema.ColumnFamilies, &pb.ColumnFamilySchema{Name: []byte(f)})
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.create(name, schema, splits)
}

func (c *Cluster) create(name string, schema *pb.TableSchema, splits [][]byte) {
	t := &table{name: name, schema: schema, families: familiesOf(schema)}

	// The last region has no stop.
	var start []byte
	for i, stop := range append(slices.Clone(splits), nil) {
		t.regions = append(t.regions, c.newRegion(t, start, stop, i%len(c.servers)))
		start = stop
	}
	c.tables[name] = t
}

// Put writes a cell directly, without a client.
func (c *Cluster) Put(tableName, key, family, qualifier, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tables[tableName]
	t.regionOf([]byte(key)).point++
	x := cell{
		family:    []byte(family),
		qualifier: []byte(qualifier),
		value:     []byte(value),
		timestamp: c.clockOf(t, []byte(key)),
	}
	t.log = append(t.log, logged{key: []byte(key), cell: x})
	t.set(t.get([]byte(key)).copied().put(x))
}

// MoveRegion moves the region of key to the next server, which ends its scanners.
func (c *Cluster) MoveRegion(tableName string, key []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.tables[tableName].regionOf(key)
	c.endScanners(r)
	c.openRegion(r, (r.server+1)%len(c.servers))
}

// Alter sets an attribute of a family and reopens the table's regions.
func (c *Cluster) Alter(tableName, family, attribute, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tables[tableName]
	for _, f := range t.schema.ColumnFamilies {
		if string(f.Name) == family {
			// If several attributes have one name a client uses the last.
			f.Attributes = append(f.Attributes, &pb.BytesBytesPair{First: []byte(attribute), Second: []byte(value)})
		}
	}
	c.reopen(t)
}

// AlterTable sets an attribute of a table and reopens its regions.
func (c *Cluster) AlterTable(tableName, attribute, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tables[tableName]
	t.schema.Attributes = append(t.schema.Attributes,
		&pb.BytesBytesPair{First: []byte(attribute), Second: []byte(value)})
	c.reopen(t)
}

// reopen closes and opens all regions of a table.
func (c *Cluster) reopen(t *table) {
	for _, r := range t.regions {
		if !r.offline {
			c.endScanners(r)
			c.openRegion(r, r.server)
		}
	}
}

// SplitRegion divides a region at key; the second half goes to the next
// server. The parent stays in hbase:meta, offline.
func (c *Cluster) SplitRegion(tableName string, key []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tables[tableName]
	parent := t.regionOf(key)
	parent.offline = true
	c.writeMeta(parent, "SPLIT")

	key = bytes.Clone(key)
	t.regions = append(t.regions,
		c.newRegion(t, parent.start, key, parent.server),
		c.newRegion(t, key, parent.stop, (parent.server+1)%len(c.servers)))
	c.endScanners(parent)
}

// LoseRegion removes the region of key from hbase:meta, which then has a hole.
func (c *Cluster) LoseRegion(tableName string, key []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tables[tableName]
	lost := t.regionOf(key)
	c.endScanners(lost)
	t.regions = slices.DeleteFunc(t.regions, func(r *regionState) bool { return r == lost })
}

// Disable disables a table, which closes its regions.
func (c *Cluster) Disable(tableName string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tables[tableName]
	t.disabled = true
	for _, r := range t.regions {
		c.endScanners(r)
	}
}

// Enable enables a table again, which opens its regions.
func (c *Cluster) Enable(tableName string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tables[tableName]
	t.disabled = false
	c.reopen(t)
}

// endScanners ends the scanners of a region, as its server does when it closes it.
func (c *Cluster) endScanners(r *regionState) {
	for id, s := range c.scanners {
		if s.region == r {
			delete(c.scanners, id)
		}
	}
}

// regionOf returns the region that holds key.
func (t *table) regionOf(key []byte) *regionState {
	for _, r := range t.regions {
		if !r.offline && r.contains(key) {
			return r
		}
	}
	return nil
}

// servedRegion returns a region by its name. It throws NotServingRegionException if
// this server does not serve it.
func (s *server) servedRegion(spec *pb.RegionSpecifier) (*table, *regionState, error) {
	for _, t := range s.c.tables {
		for _, r := range t.regions {
			if bytes.Equal(r.name, spec.GetValue()) {
				if r.offline || r.server != s.index || t.disabled {
					return nil, nil, throw(notServing, "%s is not online on server %d", r.name, s.index)
				}
				return t, r, nil
			}
		}
	}
	return nil, nil, throw(notServing, "%s is not online on server %d", spec.GetValue(), s.index)
}

// appendCell appends a cell to a cell block, as servers do.
func appendCell(b, key []byte, c cell) []byte {
	keyLen := 2 + len(key) + 1 + len(c.family) + len(c.qualifier) + 9
	for _, n := range []int{8 + keyLen + len(c.value), keyLen, len(c.value)} {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(key))), key...)
	b = append(append(b, byte(len(c.family))), c.family...)
	b = binary.BigEndian.AppendUint64(append(b, c.qualifier...), uint64(c.timestamp))
	return append(append(b, cmp.Or(c.mark, 4)), c.value...) // 4: a put
}

// countCells returns how many cells a client's block has; each comes after its length.
func countCells(b []byte) (n int) {
	for len(b) >= 4 {
		b = b[min(uint64(len(b)), 4+uint64(binary.BigEndian.Uint32(b))):]
		n++
	}
	return n
}

// firstRow returns the row of the first cell of a client's block, or nothing.
func firstRow(b []byte) string {
	if len(b) < 14 {
		return ""
	}
	b = b[12:]
	return string(b[2:min(len(b), 2+int(binary.BigEndian.Uint16(b)))])
}

// splitCell decodes the first cell of a client's block, without its row, which the
// mutation has. It returns the cell, its type and the rest of the block.
func splitCell(b []byte) (c cell, kind byte, rest []byte) {
	keyLen, valueLen := binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	key, value := b[12:12+keyLen], b[12+keyLen:12+keyLen+valueLen]

	// Behind the row: family, qualifier, timestamp and type.
	key = key[2+binary.BigEndian.Uint16(key):]
	family, tail := key[1:1+key[0]], key[1+key[0]:]
	n := len(tail) - 9
	c = cell{
		family:    bytes.Clone(family),
		qualifier: bytes.Clone(tail[:n]),
		value:     bytes.Clone(value),
		timestamp: int64(binary.BigEndian.Uint64(tail[n:])),
	}
	return c, tail[n+8], b[12+keyLen+valueLen:]
}
