package hbase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"downpour/pushdown/store"

	"github.com/tsuna/gohbase/pb"
	"github.com/tsuna/gohbase/zk"
	"google.golang.org/protobuf/proto"
)

// forever is what HBase's shell makes of TTL => 'FOREVER'; the master knows
// only the number.
const forever = "2147483647"

// CreateTable sends the attributes as they are, unlike gohbase's own call,
// which drops all but eleven names and has defaults of its own; those not given
// are the master's defaults. It returns when every region of the table is
// served.
func (st *Store) CreateTable(ctx context.Context, spec store.TableSpec) error {
	if err := st.enter(); err != nil {
		return err
	}
	defer st.wg.Done()
	schema, err := tableSchema(spec)
	if err != nil {
		return err
	}
	response := &pb.CreateTableResponse{}
	// The nonce makes a repeated request the same procedure.
	request := &pb.CreateTableRequest{TableSchema: schema, SplitKeys: spec.Splits,
		NonceGroup: &st.nonces.group, Nonce: st.nonces.next()}
	if err := st.askMaster(ctx, spec.Name, "CreateTable", request, response); err != nil {
		return err
	}
	if err := st.awaitProcedure(ctx, spec.Name, response.GetProcId()); err != nil {
		return err
	}
	if err := st.checkSchema(ctx, spec.Name, schema); err != nil {
		return err
	}
	_, err = st.Regions(ctx, spec.Name, nil, nil)
	return err
}

// TableExists looks for the table in hbase:meta. A disabled table exists but
// cannot be read: that is an error.
func (st *Store) TableExists(ctx context.Context, name string) (bool, error) {
	_, err := st.Regions(ctx, name, nil, nil)
	if errors.Is(err, store.ErrNoTable) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := st.disabled(ctx, name); err != nil {
		return true, err
	}
	return true, nil
}

// tableSchema writes the master's description of a table.
func tableSchema(spec store.TableSpec) (*pb.TableSchema, error) {
	if len(spec.Families) == 0 {
		return nil, fmt.Errorf("table %q: got no column family, want at least one", spec.Name)
	}
	schema := &pb.TableSchema{TableName: tableName(spec.Name)}
	for _, f := range spec.Families {
		family := &pb.ColumnFamilySchema{Name: []byte(f.Name)}
		for name, value := range f.Attributes {
			if name == "TTL" && strings.EqualFold(value, "FOREVER") {
				value = forever
			}
			family.Attributes = append(family.Attributes, &pb.BytesBytesPair{First: []byte(name), Second: []byte(value)})
		}
		slices.SortFunc(family.Attributes, func(a, b *pb.BytesBytesPair) int { return bytes.Compare(a.First, b.First) })
		schema.ColumnFamilies = append(schema.ColumnFamilies, family)
	}
	return schema, nil
}

// tableName splits "namespace:table".
func tableName(name string) *pb.TableName {
	ns, table, ok := strings.Cut(name, ":")
	if !ok {
		ns, table = "default", name
	}
	return &pb.TableName{Namespace: []byte(ns), Qualifier: []byte(table)}
}

// checkSchema reads the table's description back and compares what was asked
// for; further attributes are the master's defaults.
func (st *Store) checkSchema(ctx context.Context, table string, want *pb.TableSchema) error {
	response := &pb.GetTableDescriptorsResponse{}
	request := &pb.GetTableDescriptorsRequest{TableNames: []*pb.TableName{want.TableName}}
	if err := st.askMaster(ctx, table, "GetTableDescriptors", request, response); err != nil {
		return err
	}
	if n := len(response.GetTableSchema()); n != 1 {
		return fmt.Errorf("table %q: created, but read back %d descriptions, want 1", table, n)
	}
	var wrong []error
	for _, f := range want.GetColumnFamilies() {
		got := familyAttributes(response.TableSchema[0], f.Name)
		if got == nil {
			wrong = append(wrong, fmt.Errorf("family %q: not there", f.Name))
			continue
		}
		for _, a := range f.Attributes {
			if v, ok := got[string(a.First)]; !ok || !strings.EqualFold(v, string(a.Second)) {
				wrong = append(wrong, fmt.Errorf("family %q: %s: got %q, want %q", f.Name, a.First, v, a.Second))
			}
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("table %q: created, but with other attributes: %w", table, errors.Join(wrong...))
	}
	return nil
}

// familyAttributes gives a family's attributes, nil without such a family.
func familyAttributes(schema *pb.TableSchema, name []byte) map[string]string {
	for _, f := range schema.GetColumnFamilies() {
		if !bytes.Equal(f.Name, name) {
			continue
		}
		attributes := map[string]string{}
		for _, a := range f.Attributes {
			attributes[string(a.First)] = string(a.Second)
		}
		return attributes
	}
	return nil
}

// awaitProcedure waits for the master to finish a procedure.
func (st *Store) awaitProcedure(ctx context.Context, table string, id uint64) error {
	for delay := firstDelay; ; delay = min(2*delay, lastDelay) {
		response := &pb.GetProcedureResultResponse{}
		request := &pb.GetProcedureResultRequest{ProcId: proto.Uint64(id)}
		if err := st.askMaster(ctx, table, "getProcedureResult", request, response); err != nil {
			return err
		}
		switch response.GetState() {
		case pb.GetProcedureResultResponse_FINISHED:
			return procedureError(table, response)
		case pb.GetProcedureResultResponse_NOT_FOUND:
			return fmt.Errorf("table %q: the master does not know procedure %d", table, id)
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-st.life.Done():
			timer.Stop()
			return store.ErrClosed
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w: table %q: %w: the master still works on it", store.ErrUnavailable, table, context.Cause(ctx))
		}
	}
}

// procedureError is the failure of a finished procedure.
func procedureError(table string, response *pb.GetProcedureResultResponse) error {
	e := response.GetException().GetGenericException()
	if e == nil {
		return nil
	}
	err := fmt.Errorf("table %q: %w", table, &javaError{e.GetClassName(), e.GetMessage()})
	if strings.HasSuffix(e.GetClassName(), ".TableExistsException") {
		return fmt.Errorf("%w: %w", store.ErrTableExists, err)
	}
	return err
}

// askMaster calls a method of the master until it answers or ctx ends.
func (st *Store) askMaster(ctx context.Context, table, method string, request, response proto.Message) error {
	retry := st.newRetrier(ctx, table)
	for {
		err := st.callMaster(ctx, table, method, request, response)
		if err == nil {
			return nil
		}
		if err := retry.after(err); err != nil {
			return err
		}
	}
}

// callMaster makes one attempt; after a fault the master is looked up again.
func (st *Store) callMaster(ctx context.Context, table, method string, request, response proto.Message) error {
	addr, err := st.zk.address(ctx, zk.Master)
	if err != nil {
		return err
	}
	call := newRPC(ctx, method, request, response.ProtoReflect().New().Interface())
	call.table = table
	c, err := st.masters.get(ctx, addr)
	if err == nil {
		st.masters.start(c, call)
		err = st.masters.wait(ctx, c, call)
	}
	if err == nil {
		proto.Merge(response, call.response)
		return nil
	}
	if judge(err) == reconnect {
		st.zk.forget(zk.Master, addr)
		if c != nil {
			st.masters.drop(c)
		}
	}
	return err
}

// disabled tells, as an error, that a table has been disabled: its regions are
// served nowhere, and waiting for them would be in vain. The state lies in
// hbase:meta as table:state, 08 01 for DISABLED and 08 02 for DISABLING.
func (st *Store) disabled(ctx context.Context, table string) error {
	meta, err := st.locateMeta(ctx)
	if err != nil || table == metaTable {
		return nil // not known: go on trying
	}
	call := newRPC(ctx, "Get", &pb.GetRequest{
		Region: regionSpecifier(meta.name),
		Get:    &pb.Get{Row: []byte(table), Column: []*pb.Column{{Family: []byte("table")}}},
	}, &pb.GetResponse{})
	if st.call(ctx, meta, call) != nil {
		return nil
	}
	// Servers put the cells of this method into the message, because gohbase
	// tells them no version.
	for _, c := range call.response.(*pb.GetResponse).GetResult().GetCell() {
		if bytes.Equal(c.GetValue(), []byte{8, 1}) || bytes.Equal(c.GetValue(), []byte{8, 2}) {
			return fmt.Errorf("%w: table %q is disabled", store.ErrUnavailable, table)
		}
	}
	return nil
}
