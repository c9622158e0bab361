package calls

import (
	"iter"

	"github.com/tsuna/gohbase/hrpc"
	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Fields that gohbase's schema lacks; they travel as unknown fields.
const (
	fieldReadType = 23 // of Scan: enum
	readTypePread = 2
)

// readType is the field Scan.readType = PREAD, the bytes b8 01 02.
var readType = protowire.AppendVarint(protowire.AppendTag(nil, fieldReadType, protowire.VarintType), readTypePread)

// Pread sets Scan.readType = PREAD: positional reads. With the default a server ends its first reply at
// 256 KiB, to change from positional to streaming reads.
func Pread(scan *pb.Scan) { scan.ProtoReflect().SetUnknown(readType) }

// Raw sets the attribute of Scan.setRaw: delete markers, and what they mask, are returned
// too.
func Raw(scan *pb.Scan) {
	scan.Attribute = append(scan.Attribute, &pb.NameBytesPair{Name: proto.String("_raw_"), Value: []byte{0xff}})
}

// UnknownFields yields the encoded values of a field that gohbase's schema lacks.
// Decoding a message has checked them.
func UnknownFields(m proto.Message, field protowire.Number, kind protowire.Type) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for b := []byte(m.ProtoReflect().GetUnknown()); len(b) > 0; {
			number, typ, n := protowire.ConsumeField(b)
			if n < 0 {
				return
			}
			_, _, tagBytes := protowire.ConsumeTag(b)
			if number == field && typ == kind && !yield(b[tagBytes:n]) {
				return
			}
			b = b[n:]
		}
	}
}

// RegionSpecifier names a region in a request.
func RegionSpecifier(name []byte) *pb.RegionSpecifier {
	return &pb.RegionSpecifier{Type: hrpc.RegionSpecifierRegionName, Value: name}
}
