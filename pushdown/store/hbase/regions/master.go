package regions

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/calls"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// CallMaster calls a method of the master, attempt after attempt, until it answers
// or ctx ends.
func (r *Router) CallMaster(ctx context.Context, table, method string, request, response proto.Message) error {
	retry := r.NewRetrier(ctx, table)
	for {
		err := r.callMasterOnce(ctx, table, method, request, response)
		if err == nil {
			return nil
		}
		if err := retry.AfterFailure(err); err != nil {
			return err
		}
	}
}

// callMasterOnce makes one attempt. After a failed one the next attempt looks the
// master up again.
func (r *Router) callMasterOnce(ctx context.Context, table, method string, request, response proto.Message) error {
	addr, err := r.locator.address(ctx, activeMaster)
	if err != nil {
		return err
	}

	// The reply gets a message of its own, because it may come after ctx has ended.
	call := calls.New(ctx, method, request, response.ProtoReflect().New().Interface())
	call.Moved = func(ctx context.Context) bool { return r.masterMoved(ctx, addr) }
	c, err := r.masters.Get(ctx, addr)
	if err == nil {
		c.Send(call)
		err = c.Wait(ctx, call)
	}

	if err == nil {
		proto.Merge(response, call.Response)
		return nil
	}
	if calls.Classify(err) == calls.ClassReconnect {
		r.locator.forget(activeMaster, addr)
		if c != nil {
			c.Drop()
		}
	}
	return err
}

// CheckDisabled returns an error if a table is disabled or being disabled: its regions
// are served nowhere, and waiting for them would not help. If that is unknown, it
// returns nil. The state is the cell table:state in hbase:meta: 08 01 for DISABLED and
// 08 02 for DISABLING.
func (r *Router) CheckDisabled(ctx context.Context, table string) error {
	meta, err := r.LocateMeta(ctx)
	if err != nil || table == MetaTable {
		return nil
	}

	call := calls.New(ctx, "Get", &pb.GetRequest{
		Region: calls.RegionSpecifier(meta.Name),
		Get:    &pb.Get{Row: []byte(table), Column: []*pb.Column{{Family: []byte("table")}}},
	}, &pb.GetResponse{})
	if r.call(ctx, meta, call) != nil {
		return nil
	}

	// Servers put the cells of a Get into the message and not into a cell block,
	// because gohbase sends them no version.
	for _, c := range call.Response.(*pb.GetResponse).GetResult().GetCell() {
		if bytes.Equal(c.GetValue(), []byte{8, 1}) || bytes.Equal(c.GetValue(), []byte{8, 2}) {
			return fmt.Errorf("%w: table %q is disabled", store.ErrUnavailable, table)
		}
	}
	return nil
}

// TableName splits "namespace:table"; the namespace is optional.
func TableName(name string) *pb.TableName {
	ns, table, ok := strings.Cut(name, ":")
	if !ok {
		ns, table = "default", name
	}
	return &pb.TableName{Namespace: []byte(ns), Qualifier: []byte(table)}
}

// Describe reads the description of a table from the master.
func (r *Router) Describe(ctx context.Context, table string) (*pb.TableSchema, error) {
	response := &pb.GetTableDescriptorsResponse{}
	request := &pb.GetTableDescriptorsRequest{TableNames: []*pb.TableName{TableName(table)}}
	if err := r.CallMaster(ctx, table, "GetTableDescriptors", request, response); err != nil {
		return nil, fmt.Errorf("cannot read the description of table %q: %w", table, err)
	}
	if n := len(response.TableSchema); n != 1 {
		return nil, fmt.Errorf("cannot read the description of table %q: got %d, want 1", table, n)
	}
	return response.TableSchema[0], nil
}

// FamilyAttributes returns a family's attributes, nil if there is no such family.
func FamilyAttributes(schema *pb.TableSchema, name []byte) map[string]string {
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

// engineKey is StoreEngine.STORE_ENGINE_CLASS_KEY. It may be in the values or in the configuration
// of a table or of a family.
const engineKey = "hbase.hstore.engine.class"

// StoreEngine returns the class that a description names for the stores of a family,
// empty if it names none.
func StoreEngine(schema *pb.TableSchema, family string) string {
	values, settings := schema.GetAttributes(), schema.GetConfiguration()
	for _, f := range schema.GetColumnFamilies() {
		if string(f.Name) == family {
			values, settings = slices.Concat(values, f.Attributes), slices.Concat(settings, f.Configuration)
		}
	}

	for _, v := range values {
		if string(v.First) == engineKey {
			return string(v.Second)
		}
	}
	for _, v := range settings {
		if v.GetName() == engineKey {
			return v.GetValue()
		}
	}
	return ""
}
