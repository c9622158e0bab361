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
	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/regions"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// CreateTable creates a table and returns when all its regions are served. Attributes
// that are not given get the master's defaults. The attributes are sent unchanged,
// unlike in gohbase's own call, which drops all except eleven names and has its own
// defaults.
func (st *Store) CreateTable(ctx context.Context, spec store.TableSpec) error {
	if err := st.life.Begin(); err != nil {
		return err
	}
	defer st.life.Done()

	schema, err := tableSchema(spec)
	if err != nil {
		return err
	}

	// By the nonce the master recognizes a repeated request.
	response := &pb.CreateTableResponse{}
	request := &pb.CreateTableRequest{TableSchema: schema, SplitKeys: spec.Splits,
		NonceGroup: &st.nonces.group, Nonce: st.nonces.next()}
	if err := st.router.CallMaster(ctx, spec.Name, "CreateTable", request, response); err != nil {
		return err
	}
	if err := st.awaitProcedure(ctx, spec.Name, response.GetProcId()); err != nil {
		return err
	}
	// A master may create the table and drop an attribute.
	if err := st.checkSchema(ctx, spec.Name, schema); err != nil {
		return err
	}

	// Regions waits until all of them have a server.
	_, err = st.Regions(ctx, spec.Name, nil, nil)
	return err
}

// TableExists reports whether hbase:meta lists the table. For a disabled table, which
// exists but cannot be read, it also returns an error.
func (st *Store) TableExists(ctx context.Context, name string) (bool, error) {
	_, err := st.Regions(ctx, name, nil, nil)
	if errors.Is(err, store.ErrNoTable) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, st.router.CheckDisabled(ctx, name)
}

// tableSchema returns the description of a table that is sent to the master.
func tableSchema(spec store.TableSpec) (*pb.TableSchema, error) {
	if len(spec.Families) == 0 {
		return nil, fmt.Errorf("cannot create table %q: got no column family, want at least one", spec.Name)
	}

	schema := &pb.TableSchema{TableName: regions.TableName(spec.Name)}
	for _, f := range spec.Families {
		family := &pb.ColumnFamilySchema{Name: []byte(f.Name)}
		// HBase 1 has no default for it: it fails with "Cannot parse null string".
		if _, ok := f.Attributes["VERSIONS"]; !ok {
			family.Attributes = append(family.Attributes,
				&pb.BytesBytesPair{First: []byte("VERSIONS"), Second: []byte("1")})
		}
		for name, value := range f.Attributes {
			family.Attributes = append(family.Attributes,
				&pb.BytesBytesPair{First: []byte(name), Second: []byte(value)})
		}
		// In one order, so that a request is the same each time.
		slices.SortFunc(family.Attributes, func(a, b *pb.BytesBytesPair) int { return bytes.Compare(a.First, b.First) })
		schema.ColumnFamilies = append(schema.ColumnFamilies, family)
	}
	return schema, nil
}

// checkSchema reads the description of a new table back. It returns an error if an
// attribute is not as wanted; further attributes are the master's defaults.
func (st *Store) checkSchema(ctx context.Context, table string, want *pb.TableSchema) error {
	response := &pb.GetTableDescriptorsResponse{}
	request := &pb.GetTableDescriptorsRequest{TableNames: []*pb.TableName{want.TableName}}
	if err := st.router.CallMaster(ctx, table, "GetTableDescriptors", request, response); err != nil {
		return err
	}
	if n := len(response.GetTableSchema()); n != 1 {
		return fmt.Errorf("table %q: created, but read back %d descriptions, want 1", table, n)
	}

	var wrong []error
	for _, f := range want.GetColumnFamilies() {
		got := regions.FamilyAttributes(response.TableSchema[0], f.Name)
		if got == nil {
			wrong = append(wrong, fmt.Errorf("family %q: not there", f.Name))
			continue
		}
		for _, a := range f.Attributes {
			if v := got[string(a.First)]; !strings.EqualFold(v, string(a.Second)) {
				wrong = append(wrong, fmt.Errorf("family %q: %s: got %q, want %q", f.Name, a.First, v, a.Second))
			}
		}
	}

	if len(wrong) > 0 {
		return fmt.Errorf("table %q: created, but with other attributes: %w", table, errors.Join(wrong...))
	}
	return nil
}

// awaitProcedure waits until the master has finished a procedure, and returns its
// error.
func (st *Store) awaitProcedure(ctx context.Context, table string, id uint64) error {
	for delay := regions.FirstDelay; ; delay = min(2*delay, regions.LastDelay) {
		response := &pb.GetProcedureResultResponse{}
		request := &pb.GetProcedureResultRequest{ProcId: proto.Uint64(id)}
		if err := st.router.CallMaster(ctx, table, "getProcedureResult", request, response); err != nil {
			return err
		}

		switch response.GetState() {
		case pb.GetProcedureResultResponse_FINISHED:
			return procedureError(table, response)
		case pb.GetProcedureResultResponse_NOT_FOUND:
			return fmt.Errorf("table %q: the master does not know procedure %d", table, id)
		}

		// It is still under way.
		select {
		case <-time.After(delay):
		case <-st.life.Context().Done():
			return store.ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("%w: table %q: %w: the master still works on it", store.ErrUnavailable, table,
				context.Cause(ctx))
		}
	}
}

// procedureError returns the error of a finished procedure, nil if it has
// succeeded.
func procedureError(table string, response *pb.GetProcedureResultResponse) error {
	e := response.GetException().GetGenericException()
	if e == nil {
		return nil
	}

	err := fmt.Errorf("table %q: %w", table, &calls.JavaError{Class: e.GetClassName(), Message: e.GetMessage()})
	if strings.HasSuffix(e.GetClassName(), ".TableExistsException") {
		return fmt.Errorf("%w: %w", store.ErrTableExists, err)
	}
	return err
}
