package unchanged

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/regions"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// storeFiles returns the paths of the files of a region's store, as
// AdminService.GetStoreFile lists them. gohbase lacks its messages. The request has the
// region in field 1 and the family in field 2, the reply a path in each field 1; here
// they are those of region "t,,1." and family "t":
//
//	0a 09                       field 1, 9 bytes: RegionSpecifier
//	   08 01                       field 1: REGION_NAME
//	   12 05 74 2c 2c 31 2e        field 2: "t,,1."
//	12 01 74                    field 2: "t"
func (p *Prover) storeFiles(ctx context.Context, loc *regions.Location, family string) ([]string, error) {
	request, err := storeFilesRequest(loc.Name, family)
	if err != nil {
		return nil, err
	}
	call := calls.New(ctx, "GetStoreFile", request, &emptypb.Empty{})
	if err := p.router.CallAdmin(ctx, loc, call); err != nil {
		return nil, fmt.Errorf("cannot list the files of region %q: %w", loc.Name, err)
	}

	var files []string
	for path := range calls.UnknownFields(call.Response, 1, protowire.BytesType) {
		value, _ := protowire.ConsumeBytes(path)
		files = append(files, string(value))
	}
	return p.marks.shared(family, string(loc.Name), files), nil
}

func storeFilesRequest(region []byte, family string) (proto.Message, error) {
	specifier, err := proto.Marshal(calls.RegionSpecifier(region))
	if err != nil {
		return nil, err
	}
	fields := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), specifier)
	fields = protowire.AppendString(protowire.AppendTag(fields, 2, protowire.BytesType), family)
	request := &emptypb.Empty{}
	request.ProtoReflect().SetUnknown(fields)
	return request, nil
}

// sameStore concludes from the files of a store at two times that no compaction has
// dropped delete markers in between, and that no file was loaded in bulk. Such a file
// is named <hash>_SeqId_<n>_, see HRegion.bulkLoadHFiles.
func sameStore(before, after []string) bool {
	kept := false
	for _, f := range after {
		if slices.Contains(before, f) {
			kept = true
		} else if strings.Contains(f, "_SeqId_") {
			return false
		}
	}
	return kept
}
