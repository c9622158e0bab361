package hbasefake

import (
	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// ClusterID is the id of every cluster that SetClusterID has given no other.
const ClusterID = "0f3a6f0e-1f3c-4a4e-9d0a-000000000001"

// Nodes returns the addresses of the master and the region servers, which answer as
// bootstrap nodes.
func (c *Cluster) Nodes() []string {
	nodes := []string{c.master.addr}
	for _, s := range c.servers {
		nodes = append(nodes, s.addr)
	}
	return nodes
}

// SetClusterID gives the cluster another id, as if another one ran at its addresses.
func (c *Cluster) SetClusterID(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id = id
}

// StopMaster stops the master and closes its connections; RestartMaster starts it again,
// on the same port.
func (c *Cluster) StopMaster() { c.master.stop() }

// RestartMaster starts a stopped master again.
func (c *Cluster) RestartMaster() error { return c.master.listen(c.master.addr) }

// node answers a method of ClientMetaService. Its messages are not in gohbase's schema, so
// their fields are written as unknown ones of an empty message.
func (s *server) node(method string) (proto.Message, []byte, error) {
	var fields []byte
	appendField := func(number protowire.Number, b []byte) {
		fields = protowire.AppendBytes(protowire.AppendTag(fields, number, protowire.BytesType), b)
	}
	switch method {
	case "GetClusterId":
		appendField(1, []byte(s.c.id))
	case "GetActiveMaster":
		if s.c.version.before(2, 0) {
			return nil, nil, lacks(method)
		}
		appendField(1, pb.MustMarshal(serverName(s.c.master.addr)))
	case "GetMasters":
		// One that waits to become the active one comes first.
		appendField(1, namedMaster("waits:1", false))
		appendField(1, namedMaster(s.c.master.addr, true))
	case "GetMetaRegionLocations":
		// A replica first, which must not be used.
		for replica := len(s.c.servers) - 1; replica >= 0; replica-- {
			appendField(1, metaLocation(replica, s.c.servers[(s.c.metaServer+replica)%len(s.c.servers)].addr))
		}
	case "GetBootstrapNodes":
		if s.c.version.before(2, 5) {
			return nil, nil, lacks(method)
		}
		for _, rs := range s.c.servers {
			appendField(1, pb.MustMarshal(serverName(rs.addr)))
		}
	}

	m := &emptypb.Empty{}
	m.ProtoReflect().SetUnknown(fields)
	return m, nil, nil
}

// namedMaster is a master in the reply to GetMasters.
func namedMaster(addr string, active bool) []byte {
	b := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), pb.MustMarshal(serverName(addr)))
	return protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), protowire.EncodeBool(active))
}

// metaLocation is the message with the location of a replica of hbase:meta.
func metaLocation(replica int, addr string) []byte {
	info := &pb.RegionInfo{
		RegionId:  proto.Uint64(1),
		TableName: &pb.TableName{Namespace: []byte("hbase"), Qualifier: []byte("meta")},
	}
	if replica > 0 {
		info.ReplicaId = proto.Int32(int32(replica))
	}
	b := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), pb.MustMarshal(info))
	b = protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), pb.MustMarshal(serverName(addr)))
	return protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), 1)
}
