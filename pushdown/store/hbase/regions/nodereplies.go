package regions

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"downpour/pushdown/store/hbase/calls"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// The replies of a bootstrap node: everything in them is an unknown field of an empty
// message. HBase 2.6.4 gave this location of hbase:meta, region and server:
//
//	0a 40                     field 1, a location: 64 bytes
//	  0a 1b 0801 … 3800       field 1, the region: its field 7, the replica, is 0
//	  12 16                   field 2, the server: 22 bytes
//	    0a 09 6c6f63616c…     field 1, its host: localhost
//	    10 8b9a01             field 2, its port: 19723
//	    18 fce8cbbea134       field 3, when it was started
//	  18 ff…01                field 3, a number that clients do not need
//
// Source: Registry.proto and HBase.proto of HBase 2.6.

const (
	firstField     = 1
	locationServer = 2
	masterActive   = 2
)

// errNodeUnaware is returned when a node does not know the answer.
var errNodeUnaware = errors.New("the node does not know")

// parseClusterID reads the reply to GetClusterId.
func parseClusterID(reply *emptypb.Empty) (string, error) {
	for b := range messagesIn(reply) {
		if len(b) > 0 {
			return string(b), nil
		}
	}
	return "", fmt.Errorf("cluster id: %w", errNodeUnaware)
}

// parseActiveMaster reads the reply to GetActiveMaster.
func parseActiveMaster(reply *emptypb.Empty) (string, error) {
	for b := range messagesIn(reply) {
		return parseServer(b)
	}
	return "", fmt.Errorf("active master: %w", errNodeUnaware)
}

// parseMasters reads the reply to GetMasters: the masters, one of which is the active one. This is how one of
// HBase 1.7.2 is named:
//
//	0a 1a                     field 1, a master: 26 bytes
//	  0a 16 0a09… 10… 18…     field 1, the server, as in a location
//	  10 01                   field 2: it is the active one
//
// Source: Master.proto of HBase 1.7.
func parseMasters(reply *emptypb.Empty) (string, error) {
	for b := range messagesIn(reply) {
		var master emptypb.Empty
		if err := proto.Unmarshal(b, &master); err != nil {
			return "", fmt.Errorf("master: %w", err)
		}
		active := false
		for v := range calls.UnknownFields(&master, masterActive, protowire.VarintType) {
			n, _ := protowire.ConsumeVarint(v)
			active = n != 0
		}
		if !active {
			continue
		}
		for server := range messagesIn(&master) {
			return parseServer(server)
		}
	}
	return "", fmt.Errorf("active master: %w", errNodeUnaware)
}

// parseNodes reads the reply to GetBootstrapNodes.
func parseNodes(reply *emptypb.Empty) (nodes []string, err error) {
	for b := range messagesIn(reply) {
		addr, err := parseServer(b)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, addr)
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("bootstrap nodes: %w", errNodeUnaware)
	}
	return nodes, nil
}

// parseMetaLocation reads the reply to GetMetaRegionLocations: the server of the first
// replica of hbase:meta. The others may be behind it.
func parseMetaLocation(reply *emptypb.Empty) (string, error) {
	for b := range messagesIn(reply) {
		var location emptypb.Empty
		if err := proto.Unmarshal(b, &location); err != nil {
			return "", fmt.Errorf("location of hbase:meta: %w", err)
		}
		first, err := isFirstReplica(&location)
		if err != nil {
			return "", err
		}
		if !first {
			continue
		}
		for server := range calls.UnknownFields(&location, locationServer, protowire.BytesType) {
			server, _ = protowire.ConsumeBytes(server)
			return parseServer(server)
		}
	}
	return "", fmt.Errorf("location of hbase:meta: %w", errNodeUnaware)
}

// isFirstReplica reports whether a location is that of a region's first replica.
func isFirstReplica(location *emptypb.Empty) (bool, error) {
	for b := range messagesIn(location) {
		var info pb.RegionInfo
		if err := proto.Unmarshal(b, &info); err != nil {
			return false, fmt.Errorf("region of hbase:meta: %w", err)
		}
		return info.GetReplicaId() == 0, nil
	}
	return false, fmt.Errorf("location of hbase:meta: got no region")
}

// messagesIn yields what is in the first field of a message, which may be repeated.
func messagesIn(m proto.Message) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for b := range calls.UnknownFields(m, firstField, protowire.BytesType) {
			if inner, _ := protowire.ConsumeBytes(b); !yield(inner) {
				return
			}
		}
	}
}

// parseServer reads the name of a server, "host:port".
func parseServer(b []byte) (string, error) {
	var s pb.ServerName
	if err := proto.Unmarshal(b, &s); err != nil {
		return "", fmt.Errorf("server name: %w", err)
	}
	if s.GetHostName() == "" || s.GetPort() == 0 || s.GetPort() > 65535 {
		return "", fmt.Errorf("server name: got host %q and port %d, want both", s.GetHostName(), s.GetPort())
	}
	return net.JoinHostPort(s.GetHostName(), strconv.FormatUint(uint64(s.GetPort()), 10)), nil
}
