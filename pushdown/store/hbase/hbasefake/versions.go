package hbasefake

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Types of deletions of single versions, see deleteColumn.
const (
	deleteVersion       = 8
	deleteFamilyVersion = 10
)

// stored is a put or a marker of a table that keeps versions. If it is not in a file it is in the
// memstore.
type stored struct {
	cell
	inFile bool
}

// KeepVersions lets an empty table keep all versions of cells and all markers until a flush or
// a major compaction drops them, as HBase does in a family with VERSIONS => 1: a marker also
// hides a put that comes after it, and versions that a deleted one has hidden are visible
// again.
func (c *Cluster) KeepVersions(tableName string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tables[tableName].versions = map[string][]stored{}
}

// PutAt writes a cell with a timestamp in ms, 0 for the clock of the row's server.
func (c *Cluster) PutAt(tableName, key, family, qualifier, value string, at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tables[tableName]
	t.record([]byte(key), cell{
		family:    []byte(family),
		qualifier: []byte(qualifier),
		value:     []byte(value),
		timestamp: cmp.Or(at, c.clockOf(t, []byte(key))),
	})
}

// DeleteRow deletes a family of a row, as of now.
func (c *Cluster) DeleteRow(tableName, key, family string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tables[tableName]
	t.record([]byte(key), cell{family: []byte(family), timestamp: c.clockOf(t, []byte(key)), mark: deleteFamily})
}

// FlushVersions writes the memstore of a table that keeps versions to files, see flushed.
func (c *Cluster) FlushVersions(tableName string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tables[tableName].flushVersions()
}

func (t *table) flushVersions() {
	for key, all := range t.versions {
		t.versions[key] = flushed(all)
		t.show([]byte(key))
	}
}

// flushed returns a row after its memstore was written to a file. A column is written from its
// newest version on, a marker before the puts of its time. A put that the marker of a version
// hides is left out. At a put that another marker hides, or that is the second to be seen, the
// rest of the column is left out, including later markers: puts that they hide in older files
// can become visible again. Source: MinorCompactionScanQueryMatcher,
// ScanWildcardColumnTracker.
func flushed(all []stored) (kept []stored) {
	var memory []stored
	for _, s := range all {
		if s.inFile {
			kept = append(kept, s)
		} else {
			memory = append(memory, s)
		}
	}
	slices.SortStableFunc(memory, func(a, b stored) int {
		return cmp.Or(compareCells(a.cell, b.cell), cmp.Compare(b.timestamp, a.timestamp), cmp.Compare(b.mark, a.mark))
	})

	seen, ended := 0, false
	for i, s := range memory {
		if i == 0 || compareCells(memory[i-1].cell, s.cell) != 0 {
			seen, ended = 0, false
		}
		if ended {
			continue
		}
		if s.mark == 0 {
			single := func(m stored) bool { return m.mark == deleteVersion || m.mark == deleteFamilyVersion }
			if hidden(memory, s, func(m stored) bool { return !single(m) }) {
				ended = true
				continue
			}
			if hidden(memory, s, single) {
				continue
			}
			if seen++; seen > 1 {
				ended = true
				continue
			}
		}
		s.inFile = true
		kept = append(kept, s)
	}
	return kept
}

// CompactVersions makes one file of all files of a table that keeps versions. Markers there, and
// the puts that they hide there, are dropped; the memstore does not change.
func (c *Cluster) CompactVersions(tableName string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tables[tableName]
	for key, all := range t.versions {
		inFile := func(s stored) bool { return s.inFile }
		newest := shown(all, inFile)
		t.versions[key] = nil
		for i, s := range all {
			if !s.inFile || newest[i] {
				t.versions[key] = append(t.versions[key], s)
			}
		}
		t.show([]byte(key))
	}
}

// shown marks the puts that are the newest versions of their columns and that no marker hides,
// among those that count. The last of equal versions is the newest. Rows of leases have thousands
// of versions, so each is read once.
func shown(all []stored, counts func(stored) bool) (is []bool) {
	markers := slices.DeleteFunc(slices.Clone(all), func(s stored) bool { return s.mark == 0 })
	newest := map[string]*int{} // index by column; a pointer, so that each key is allocated once
	var column []byte
	for i, s := range all {
		if s.mark != 0 || !counts(s) || hidden(markers, s, counts) {
			continue
		}
		column = append(append(append(column[:0], s.family...), 0), s.qualifier...)
		if last, ok := newest[string(column)]; !ok {
			newest[string(column)] = &i
		} else if s.timestamp >= all[*last].timestamp {
			*last = i
		}
	}
	is = make([]bool, len(all))
	for _, i := range newest {
		is[*i] = true
	}
	return is
}

// hidden reports whether a marker hides a put.
func hidden(all []stored, put stored, counts func(stored) bool) bool {
	return slices.ContainsFunc(all, func(s stored) bool {
		if s.mark == 0 || !counts(s) || !bytes.Equal(s.family, put.family) {
			return false
		}
		sameColumn := bytes.Equal(s.qualifier, put.qualifier)
		switch s.mark {
		case deleteFamily:
			return put.timestamp <= s.timestamp
		case deleteFamilyVersion:
			return put.timestamp == s.timestamp
		case deleteColumn:
			return sameColumn && put.timestamp <= s.timestamp
		}
		return sameColumn && put.timestamp == s.timestamp
	})
}

// record adds a put or a marker to a table that keeps versions. In memory it replaces one with its
// column and timestamp.
func (t *table) record(key []byte, x cell) {
	same := func(s stored) bool {
		return !s.inFile && sameVersion(s.cell, x)
	}
	all := slices.DeleteFunc(slices.Clone(t.versions[string(key)]), same)
	t.versions[string(key)] = append(all, stored{cell: x})
	t.regionOf(key).point++
	t.show(key)
}

// show puts into the table what can be seen of a row's versions.
func (t *table) show(key []byte) {
	all := t.versions[string(key)]
	r := &row{key: bytes.Clone(key)}
	for i, newest := range shown(all, func(stored) bool { return true }) {
		if newest {
			r.put(all[i].cell)
		}
	}
	t.set(r)
}

// sameVersion reports whether two puts, or two markers, are of one column and timestamp.
func sameVersion(a, b cell) bool {
	return a.mark == b.mark && a.timestamp == b.timestamp && compareCells(a, b) == 0
}

// changeVersions executes a mutation in a table that keeps versions, and returns the row.
func (t *table) changeVersions(key []byte, kind pb.MutationProto_MutationType, list []change) (*row, error) {
	if kind == pb.MutationProto_DELETE {
		for _, c := range list {
			c.cell.mark = c.kind
			t.record(key, c.cell)
		}
		return t.get(key), nil
	}

	// Appends and increments depend on what can be seen.
	changed, err := t.get(key).change(kind, list)
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		if kind != pb.MutationProto_PUT {
			c.cell = *changed.cell(c.family, c.qualifier)
		}
		t.record(key, c.cell)
	}
	return t.get(key), nil
}

// rawVersions returns all rows of a table that keeps versions with everything that is there,
// markers of the family first, then by qualifier, the newest first, a marker before the put
// of its timestamp.
func (t *table) rawVersions() []*row {
	var rows []*row
	for key, all := range t.versions {
		if len(all) == 0 {
			continue
		}
		r := &row{key: []byte(key)}
		for i, s := range all {
			if !slices.ContainsFunc(all[i+1:], func(o stored) bool { return sameVersion(o.cell, s.cell) }) {
				r.cells = append(r.cells, s.cell)
			}
		}
		slices.SortFunc(r.cells, func(a, b cell) int {
			return cmp.Or(compareCells(a, b), cmp.Compare(b.timestamp, a.timestamp), cmp.Compare(b.mark, a.mark))
		})
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *row) int { return bytes.Compare(a.key, b.key) })
	return rows
}

// Fields that gohbase's schema lacks.
const (
	fieldCondition = 4 // of RegionAction
	fieldProcessed = 3 // of RegionActionResult
)

// conditionOf returns the condition of a region action, nil if it has none.
func conditionOf(ra *pb.RegionAction) (*pb.Condition, error) {
	unknown := []byte(ra.ProtoReflect().GetUnknown())
	if len(unknown) == 0 {
		return nil, nil
	}

	number, kind, n := protowire.ConsumeTag(unknown)
	if n < 0 || number != fieldCondition || kind != protowire.BytesType {
		return nil, throw(doNotRetry, "region action with field %d", number)
	}
	message, m := protowire.ConsumeBytes(unknown[n:])
	condition := &pb.Condition{}
	if m < 0 || proto.Unmarshal(message, condition) != nil {
		return nil, throw(doNotRetry, "condition %x", unknown)
	}
	return condition, nil
}

// multiConditional executes a region action with a condition: all its mutations, which are of
// one row, or none. It returns the rest of the block.
func (s *server) multiConditional(t *table, r *regionState, ra *pb.RegionAction, condition *pb.Condition,
	block []byte) (*pb.RegionActionResult, []byte, error) {
	lists := make([][]change, len(ra.Action))
	for i, a := range ra.Action {
		lists[i], block = changes(a.Mutation, block)
		if !bytes.Equal(a.Mutation.Row, condition.Row) {
			return nil, block, throw(doNotRetry, "a mutation of row %x, want %x", a.Mutation.Row, condition.Row)
		}
	}
	if t == nil {
		return nil, block, nil
	}

	held, err := t.holds(condition)
	for i, a := range ra.Action {
		if err == nil && held {
			_, _, err = s.mutate(t, r, a.Mutation, lists[i])
		}
	}
	result := &pb.RegionActionResult{}
	field := protowire.AppendTag(nil, fieldProcessed, protowire.VarintType)
	result.ProtoReflect().SetUnknown(protowire.AppendVarint(field, protowire.EncodeBool(held)))
	return result, block, err
}

// passes evaluates a filter that is a condition: whether it leaves anything of a row.
func (t *table) passes(key []byte, f *pb.Filter) (bool, error) {
	var list pb.FilterList
	var column pb.SingleColumnValueFilter
	var binary pb.BinaryComparator
	var skip pb.SkipFilter
	var stamps pb.TimestampsFilter
	var page pb.ColumnPaginationFilter
	cells := t.get(key).cells
	known := func(x cell) bool { return slices.Contains(stamps.GetTimestamps(), x.timestamp) }

	switch {
	case decodeFilter(f, "FilterList", &list) && list.GetOperator() == pb.FilterList_MUST_PASS_ALL:
		for _, each := range list.Filters {
			if ok, err := t.passes(key, each); !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	case decodeFilter(f, "SkipFilter", &skip) && decodeFilter(skip.GetFilter(), "TimestampsFilter", &stamps):
		return len(cells) > 0 && !slices.ContainsFunc(cells, func(x cell) bool { return !known(x) }), nil
	case decodeFilter(f, "ColumnPaginationFilter", &page) && page.ColumnOffset == nil && page.GetLimit() > 0:
		return len(cells) > int(page.GetOffset()), nil
	case decodeFilter(f, "TimestampsFilter", &stamps):
		return slices.ContainsFunc(cells, known), nil
	case decodeFilter(f, "SingleColumnValueFilter", &column) && column.GetCompareOp() == pb.CompareType_EQUAL &&
		column.GetFilterIfMissing() &&
		column.GetLatestVersionOnly() &&
		proto.Unmarshal(column.GetComparator().GetSerializedComparator(), &binary) == nil:
		x := t.get(key).cell(column.ColumnFamily, column.ColumnQualifier)
		return x != nil && bytes.Equal(x.value, binary.GetComparable().GetValue()), nil
	}
	return false, throw(doNotRetry, "filter %s", f.GetName())
}

// decodeFilter decodes a filter of this name into m, and reports whether it is one.
func decodeFilter(f *pb.Filter, name string, m proto.Message) bool {
	return strings.HasSuffix(f.GetName(), "."+name) && proto.Unmarshal(f.GetSerializedFilter(), m) == nil
}
