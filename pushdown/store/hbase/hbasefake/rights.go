package hbasefake

import (
	"bytes"
	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Deny makes the cluster check rights. Clients learn that they may not read these families,
// "table:family", and may read all others. Reads are still not refused: servers that leave out
// cells refuse nothing.
func (c *Cluster) Deny(families ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.denied = map[string]bool{}
	for _, f := range families {
		c.denied[f] = true
	}
}

// capabilities executes MasterService.getSecurityCapabilities.
func (s *server) capabilities() (proto.Message, []byte, error) {
	response := &pb.SecurityCapabilitiesResponse{}
	if s.c.denied != nil {
		response.Capabilities = append(response.Capabilities, pb.SecurityCapabilitiesResponse_AUTHORIZATION)
	}
	return response, nil, nil
}

// permissions executes MasterService.HasUserPermissions, whose messages gohbase lacks, for the right to read
// families of tables. In the request permission is field 2, and in that the table's permission 4: table 1, family 2,
// action 4, which is 0 for READ.
func (s *server) permissions(param []byte) (proto.Message, []byte, error) {
	if s.c.version.before(2, 2) {
		return nil, nil, lacks("HasUserPermissions")
	}
	var reply []byte
	for _, permission := range bytesFields(param, 2) {
		for _, table := range bytesFields(permission, 4) {
			var name pb.TableName
			names, families := bytesFields(table, 1), bytesFields(table, 2)
			if len(names) != 1 || len(families) != 1 || proto.Unmarshal(names[0], &name) != nil ||
				!bytes.HasSuffix(table, []byte{4 << 3, 0}) {
				return nil, nil, throw(doNotRetry, "permission %x", permission)
			}
			has := uint64(1)
			if s.c.denied[fullName(&name)+":"+string(families[0])] {
				has = 0
			}
			reply = protowire.AppendVarint(protowire.AppendTag(reply, 1, protowire.VarintType), has)
		}
	}
	m := &emptypb.Empty{}
	m.ProtoReflect().SetUnknown(reply)
	return m, nil, nil
}

// bytesFields returns the values of a field of bytes in a message.
func bytesFields(m []byte, field protowire.Number) (values [][]byte) {
	for len(m) > 0 {
		number, kind, n := protowire.ConsumeTag(m)
		if n < 0 {
			return values
		}
		size := protowire.ConsumeFieldValue(number, kind, m[n:])
		if size < 0 {
			return values
		}
		if number == field && kind == protowire.BytesType {
			v, _ := protowire.ConsumeBytes(m[n:])
			values = append(values, v)
		}
		m = m[n+size:]
	}
	return values
}
