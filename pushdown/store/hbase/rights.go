package hbase

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/regions"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Fields of HasUserPermissions, whose messages gohbase's schema lacks. Without a user's name the
// request is about the caller.
const (
	fieldPermission      = 2 // of the request: Permission
	fieldPermissionType  = 1 // of Permission: enum
	fieldTablePermission = 4 // of Permission: TablePermission
	fieldPermittedTable  = 1 // of TablePermission: TableName
	fieldPermittedFamily = 2 // of TablePermission: bytes
	fieldPermittedAction = 4 // of TablePermission: enum, READ is 0
	typeTable            = 3
	fieldHasPermission   = 1 // of the reply: bool, repeated
)

// CheckReadable is described by store.Features. If HBase checks rights at all, it queries the
// master for our right to read each family. A right on some columns only is none on the family. A
// missing table has nothing that could be left out.
//
// Source: AccessControl.proto, MasterRpcServices.hasUserPermissions and AccessChecker of HBase 2.5.
func (st *Store) CheckReadable(ctx context.Context, of []store.Families) error {
	if st.cfg.RightsElsewhere {
		return nil
	}
	if err := st.life.Begin(); err != nil {
		return err
	}
	defer st.life.Done()

	capabilities := &pb.SecurityCapabilitiesResponse{}
	if err := st.router.CallMaster(ctx, "", "getSecurityCapabilities", &pb.SecurityCapabilitiesRequest{},
		capabilities); err != nil {
		return cannotAsk(err)
	}
	if !slices.Contains(capabilities.GetCapabilities(), pb.SecurityCapabilitiesResponse_AUTHORIZATION) {
		return nil
	}

	request, err := readQuestion(of)
	if err != nil {
		return cannotAsk(err)
	}
	response := &emptypb.Empty{}
	if err := st.router.CallMaster(ctx, "", "HasUserPermissions", request, response); err != nil {
		return cannotAsk(err)
	}
	lacking, err := readAnswer(of, response.ProtoReflect().GetUnknown())
	if err != nil {
		return err
	}
	var denied []error
	for _, f := range lacking {
		there, err := st.TableExists(ctx, f.Table)
		if err != nil {
			return cannotAsk(err)
		}
		if there {
			denied = append(denied,
				fmt.Errorf(
					"%w: our user lacks the right READ (in grant of hbase shell: 'R') on all of families %q of "+
						"table %q, so HBase may leave out cells and say nothing "+
						"(if not HBase itself but another system grants rights, such as Apache Ranger, set "+
						"DOWNPOUR_HBASE_CHECK_RIGHTS=false)", store.ErrDenied, f.Names, f.Table))
		}
	}
	return errors.Join(denied...)
}

// cannotAsk is the error of a failed request. It has only the text of its cause: a refusal to list
// rights is no refusal of a read. If the master does not know the request, it is an
// errors.ErrUnsupported.
func cannotAsk(err error) error {
	text := fmt.Sprintf("cannot ask the master for our rights: %v", calls.WithoutStack(err))
	if calls.LacksMethod(err) {
		return unknownQuestion(text)
	}
	return errors.New(text)
}

// unknownQuestion is the text of an error that each attempt would have.
type unknownQuestion string

func (q unknownQuestion) Error() string { return string(q) }

// Is makes it an errors.ErrUnsupported.
func (unknownQuestion) Is(target error) bool { return target == errors.ErrUnsupported }

// readQuestion is the request for the right to read each family.
func readQuestion(of []store.Families) (*emptypb.Empty, error) {
	var request []byte
	for _, f := range of {
		name, err := proto.Marshal(regions.TableName(f.Table))
		if err != nil {
			return nil, err
		}
		for _, family := range f.Names {
			table := protowire.AppendBytes(protowire.AppendTag(nil, fieldPermittedTable, protowire.BytesType), name)
			table = protowire.AppendString(protowire.AppendTag(table, fieldPermittedFamily, protowire.BytesType),
				family)
			table = protowire.AppendVarint(protowire.AppendTag(table, fieldPermittedAction, protowire.VarintType), 0)

			permission := protowire.AppendVarint(protowire.AppendTag(nil, fieldPermissionType, protowire.VarintType),
				typeTable)
			permission = protowire.AppendBytes(protowire.AppendTag(permission, fieldTablePermission,
				protowire.BytesType), table)
			request = protowire.AppendBytes(protowire.AppendTag(request, fieldPermission, protowire.BytesType),
				permission)
		}
	}
	m := &emptypb.Empty{}
	m.ProtoReflect().SetUnknown(request)
	return m, nil
}

// readAnswer returns the families that may not be read.
func readAnswer(of []store.Families, reply []byte) (lacking []store.Families, err error) {
	m := &emptypb.Empty{}
	if err := proto.Unmarshal(reply, m); err != nil {
		return nil, cannotAsk(err)
	}
	var has []bool
	for value := range calls.UnknownFields(m, fieldHasPermission, protowire.VarintType) {
		v, _ := protowire.ConsumeVarint(value)
		has = append(has, v != 0)
	}

	asked := 0
	for _, f := range of {
		asked += len(f.Names)
	}
	if len(has) != asked {
		return nil, cannotAsk(fmt.Errorf("%w: got %d rights, want %d", errReply, len(has), asked))
	}

	for _, f := range of {
		l := store.Families{Table: f.Table}
		for i, family := range f.Names {
			if !has[i] {
				l.Names = append(l.Names, family)
			}
		}
		has = has[len(f.Names):]
		if len(l.Names) > 0 {
			lacking = append(lacking, l)
		}
	}
	return lacking, nil
}
