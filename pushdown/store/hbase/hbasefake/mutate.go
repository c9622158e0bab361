package hbasefake

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// Types of a delete's cells.
const (
	deleteColumn = 12
	deleteFamily = 14
)

// get executes the Get method. From hbase:meta it reads only the state of a table.
func (s *server) get(m *pb.GetRequest) (proto.Message, []byte, error) {
	if string(m.GetRegion().GetValue()) == metaRegion {
		if err := s.servesMeta(); err != nil {
			return nil, nil, err
		}
		return s.tableState(string(m.Get.Row))
	}
	t, r, err := s.servedRegion(m.GetRegion())
	if err != nil {
		return nil, nil, err
	}
	result, block, err := t.read(r, m.Get)
	if err != nil {
		return nil, nil, err
	}
	// The cells of a single get come in the message.
	result.AssociatedCellCount = nil
	for len(block) > 0 {
		var c cell
		c, _, block = splitCell(block)
		result.Cell = append(result.Cell, &pb.Cell{
			Row:       m.Get.Row,
			Family:    c.family,
			Qualifier: c.qualifier,
			Value:     c.value,
			Timestamp: proto.Uint64(uint64(c.timestamp)),
			CellType:  pb.CellType_PUT.Enum(),
		})
	}
	return &pb.GetResponse{Result: result}, nil, nil
}

// tableState returns the cell table:state of hbase:meta: 08 00 for an enabled table,
// 08 01 for a disabled one.
func (s *server) tableState(name string) (proto.Message, []byte, error) {
	if s.c.version.before(2, 0) {
		return nil, nil, throw(noFamily, "table in %s", metaName)
	}
	t := s.c.tables[name]
	if t == nil {
		return &pb.GetResponse{Result: &pb.Result{}}, nil, nil
	}
	state := []byte{8, 0}
	if t.disabled {
		state[1] = 1
	}

	found := &pb.Cell{Row: []byte(name), Family: []byte("table"), Qualifier: []byte("state"), Value: state}
	return &pb.GetResponse{Result: &pb.Result{Cell: []*pb.Cell{found}}}, nil, nil
}

// read executes a get in a region.
func (t *table) read(r *regionState, g *pb.Get) (*pb.Result, []byte, error) {
	if !r.contains(g.Row) {
		return nil, nil, throw(wrongRegion, "row %x", g.Row)
	}
	f, err := newFilter(&pb.Scan{Column: g.Column})
	if err != nil {
		return nil, nil, err
	}

	for family := range f.families {
		if !t.families[family] {
			return nil, nil, throw(noFamily, "%s in table %s", family, t.name)
		}
	}

	kept := f.apply(t.get(g.Row))
	if g.GetExistenceOnly() {
		return &pb.Result{Exists: proto.Bool(len(kept.cells) > 0)}, nil, nil
	}
	var block []byte
	for _, c := range kept.cells {
		block = appendCell(block, kept.key, c)
	}

	return &pb.Result{AssociatedCellCount: proto.Int32(int32(len(kept.cells)))}, block, nil
}

// change is one cell of a mutation.
type change struct {
	cell
	kind byte
}

// changes returns a mutation's cells, from the message or from the start of the
// block, and the rest of the block.
func changes(m *pb.MutationProto, block []byte) ([]change, []byte) {
	var list []change
	for range m.GetAssociatedCellCount() {
		var c change
		c.cell, c.kind, block = splitCell(block)
		list = append(list, c)
	}

	for _, cv := range m.ColumnValue {
		for _, qv := range cv.QualifierValue {
			// A put (4) or an increment, with the server's time (MaxInt64).
			list = append(list,
				change{cell{family: cv.Family, qualifier: qv.Qualifier, value: qv.Value, timestamp: math.MaxInt64}, 4})
		}
	}
	return list, block
}

// mutate executes a mutation. One with a known nonce is not executed again.
func (s *server) mutate(t *table, r *regionState, m *pb.MutationProto, list []change) (*pb.Result, []byte, error) {
	if !r.contains(m.Row) {
		return nil, nil, throw(wrongRegion, "row %x", m.Row)
	}

	// An edit that is not logged dies with its server; how a table's edits are
	// logged is the table's affair.
	if d := m.GetDurability(); d != pb.MutationProto_USE_DEFAULT {
		return nil, nil, throw(doNotRetry, "durability %s, want the table's", d)
	}

	for _, c := range list {
		if !t.families[string(c.family)] {
			return nil, nil, throw(noFamily, "%s in table %s", c.family, t.name)
		}
	}

	// A client that sends a mutation again uses its nonce again. HBase 1 makes a get of an append that it
	// has done, and looks for its cells a second time.
	again := s.c.nonces[m.GetNonce()] && m.Nonce != nil
	if again && m.GetMutateType() == pb.MutationProto_APPEND && s.c.version.before(2, 0) {
		return nil, nil, throw(doNotRetry, "Cell count of 1 but at index 0 no cell returned")
	}
	if m.Nonce != nil {
		s.c.nonces[m.GetNonce()] = true
	}

	changed := t.get(m.Row)
	if !again {
		var err error
		// HBase's LATEST_TIMESTAMP means the server's clock, which is read once for all cells of a mutation.
		now := s.c.clockOf(t, m.Row)
		for i := range list {
			if list[i].timestamp == math.MaxInt64 {
				list[i].timestamp = now
			}
		}
		if t.versions != nil {
			changed, err = t.changeVersions(m.Row, m.GetMutateType(), list)
		} else {
			changed, err = changed.change(m.GetMutateType(), list)
		}
		if err != nil {
			return nil, nil, err
		}
		for _, c := range list {
			t.log = append(t.log,
				logged{key: changed.key, cell: c.cell, deletes: m.GetMutateType() == pb.MutationProto_DELETE})
		}
		t.set(changed)
		r.point++
	}

	// Only an increment returns the new value.
	if m.GetMutateType() != pb.MutationProto_INCREMENT {
		return &pb.Result{}, nil, nil
	}
	c := changed.cell(list[0].family, list[0].qualifier)
	return &pb.Result{AssociatedCellCount: proto.Int32(1)}, appendCell(nil, m.Row, *c), nil
}

// change returns a copy of a row to which cells are applied.
func (r *row) change(kind pb.MutationProto_MutationType, list []change) (*row, error) {
	r = r.copied()
	for _, c := range list {
		old := r.cell(c.family, c.qualifier)
		switch kind {
		case pb.MutationProto_DELETE:
			r = r.remove(c)
			continue
		case pb.MutationProto_APPEND:
			// The timestamp goes up even within a millisecond, as in HBase.
			if old != nil {
				c.value = append(bytes.Clone(old.value), c.value...)
				c.timestamp = max(c.timestamp, old.timestamp+1)
			}
		case pb.MutationProto_INCREMENT:
			if old != nil && len(old.value) != 8 {
				return nil, throw(doNotRetry, "a counter of %d bytes", len(old.value))
			}
			if old != nil {
				sum := binary.BigEndian.Uint64(old.value) + binary.BigEndian.Uint64(c.value)
				c.value = binary.BigEndian.AppendUint64(nil, sum)
				c.timestamp = max(c.timestamp, old.timestamp+1)
			}
		}

		r = r.put(c.cell)
	}

	return r, nil
}

// remove returns a row without the cells that a deletion covers.
func (r *row) remove(d change) *row {
	kept := &row{key: r.key}
	for _, c := range r.cells {
		hit := bytes.Equal(c.family, d.family) && c.timestamp <= d.timestamp &&
			(d.kind == deleteFamily || bytes.Equal(c.qualifier, d.qualifier)) &&
			(d.kind != deleteVersion || c.timestamp == d.timestamp)
		if !hit {
			kept.cells = append(kept.cells, c)
		}
	}
	return kept
}

// mutateOne executes the Mutate method, with or without a condition.
func (s *server) mutateOne(m *pb.MutateRequest, block []byte) (proto.Message, []byte, error) {
	t, r, err := s.servedRegion(m.GetRegion())
	if err != nil {
		return nil, nil, err
	}

	list, _ := changes(m.Mutation, block)
	if c := m.Condition; c != nil {
		holds, err := t.holds(c)
		if err != nil || !holds {
			return &pb.MutateResponse{Processed: proto.Bool(false)}, nil, err
		}
	}

	result, cells, err := s.mutate(t, r, m.Mutation, list)
	return &pb.MutateResponse{Result: result, Processed: proto.Bool(true)}, cells, err
}

// holds reports whether a condition holds, which must be EQUAL with a
// BinaryComparator: clients send no other. As in HBase, an absent cell equals an
// empty value.
func (t *table) holds(c *pb.Condition) (bool, error) {
	if c.Filter != nil {
		return t.passes(c.Row, c.Filter)
	}
	if c.GetCompareType() != pb.CompareType_EQUAL ||
		!strings.HasSuffix(c.GetComparator().GetName(), ".BinaryComparator") {
		return false, throw(illegalValue, "condition %s with %s, want EQUAL with a BinaryComparator",
			c.GetCompareType(), c.GetComparator().GetName())
	}

	var binary pb.BinaryComparator
	if err := proto.Unmarshal(c.GetComparator().GetSerializedComparator(), &binary); err != nil {
		return false, throw(illegalValue, "%v", err)
	}
	want, found := binary.GetComparable().GetValue(), t.get(c.Row).cell(c.Family, c.Qualifier)
	if found == nil {
		return len(want) == 0, nil
	}
	return bytes.Equal(want, found.value), nil
}

// multi executes gets and mutations region by region. It leaves out the actions
// whose index modulo 2 is skip; -1 leaves out none.
func (s *server) multi(m *pb.MultiRequest, block []byte, skip int) (proto.Message, []byte, error) {
	response := &pb.MultiResponse{}
	var cells []byte
	for _, ra := range m.RegionAction {
		result := &pb.RegionActionResult{}
		response.RegionActionResult = append(response.RegionActionResult, result)
		t, r, regionErr := s.servedRegion(ra.GetRegion())
		condition, err := conditionOf(ra)
		if err != nil {
			return nil, nil, err
		}
		if condition != nil && !s.c.version.before(2, 4) {
			var outcome *pb.RegionActionResult
			if outcome, block, err = s.multiConditional(t, r, ra, condition, block); regionErr == nil {
				regionErr = err
			}
			if regionErr != nil {
				outcome = &pb.RegionActionResult{Exception: exceptionPair(regionErr)}
			}
			response.RegionActionResult[len(response.RegionActionResult)-1] = outcome
			continue
		}
		if regionErr != nil {
			result.Exception = exceptionPair(regionErr)
		}

		// Puts and deletions are executed together, in the order of their rows, behind the gets.
		var together []*pb.Action
		outcomes := map[*pb.Action]*pb.ResultOrException{}
		for _, a := range ra.Action {
			var list []change
			if a.Mutation != nil {
				// The block has its cells even if the action is not executed.
				list, block = changes(a.Mutation, block)
			}
			if regionErr != nil || int(a.GetIndex()%2) == skip {
				continue
			}

			roe := &pb.ResultOrException{Index: a.Index}
			var out []byte
			var err error
			if a.Get != nil {
				roe.Result, out, err = t.read(r, a.Get)
			} else {
				roe.Result, out, err = s.mutate(t, r, a.Mutation, list)
			}

			plain := a.Get == nil && (a.Mutation.GetMutateType() == pb.MutationProto_PUT ||
				a.Mutation.GetMutateType() == pb.MutationProto_DELETE)
			if java, ok := err.(*javaError); ok && plain && java.class == wrongRegion {
				err = throw(failedSanity, "row %x", a.Mutation.Row)
			}
			if err != nil {
				roe.Result, roe.Exception = nil, exceptionPair(err)
			}
			if err == nil && s.c.version.before(2, 0) && wantsNoResult(a.Mutation) {
				continue
			}
			if plain {
				together, outcomes[a] = append(together, a), roe
				continue
			}
			cells = append(cells, out...)
			result.ResultOrException = append(result.ResultOrException, roe)
		}
		slices.SortStableFunc(together, func(a, b *pb.Action) int {
			return bytes.Compare(a.Mutation.Row, b.Mutation.Row)
		})
		for _, a := range together {
			result.ResultOrException = append(result.ResultOrException, outcomes[a])
		}
	}

	return response, cells, nil
}

// wantsNoResult reports whether a mutation is an append whose result the client does not want. HBase 1 leaves
// it out of the reply.
func wantsNoResult(m *pb.MutationProto) bool {
	return m != nil && m.GetMutateType() == pb.MutationProto_APPEND &&
		slices.ContainsFunc(m.Attribute, func(a *pb.NameBytesPair) bool {
			return a.GetName() == "_rr_" && bytes.Equal(a.Value, []byte{0})
		})
}

// refuseActions answers every action with an exception, like a region that accepts
// no writes.
func refuseActions(m *pb.MultiRequest, err error) *pb.MultiResponse {
	response := &pb.MultiResponse{}
	for _, ra := range m.RegionAction {
		result := &pb.RegionActionResult{}
		response.RegionActionResult = append(response.RegionActionResult, result)
		// An atomic action fails as a whole.
		if ra.GetAtomic() {
			result.Exception = exceptionPair(err)
			continue
		}
		for _, a := range ra.Action {
			result.ResultOrException = append(result.ResultOrException,
				&pb.ResultOrException{Index: a.Index, Exception: exceptionPair(err)})
		}
	}
	return response
}

// exceptionPair returns an exception in the form of a Multi reply.
func exceptionPair(err error) *pb.NameBytesPair {
	java := err.(*javaError)
	return &pb.NameBytesPair{Name: &java.class, Value: []byte(java.Error() + "\n\tat fake")}
}
