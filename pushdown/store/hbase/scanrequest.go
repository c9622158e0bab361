package hbase

import (
	"context"
	"math"
	"time"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// defaultBlockBytes is the size of a reply at which HBase scans best; more
// wins nothing, below a quarter of it hurts.
const defaultBlockBytes = 2 << 20

// Fields that gohbase's schema does not know; they travel as unknown fields.
const (
	fieldReadType    = 23 // of Scan: enum
	fieldLimitOfRows = 11 // of ScanRequest: uint32
	readTypePread    = 2
)

// readType is B8 01 02. With the default a server breaks its first reply off
// at 256 KiB to change from pread to stream.
var readType = protowire.AppendVarint(protowire.AppendTag(nil, fieldReadType, protowire.VarintType), readTypePread)

// openRequest opens a scanner in loc at s.at.
func (s *scanner) openRequest(loc *location) (*pb.ScanRequest, error) {
	filter, err := s.filters.build(s.at, loc.stop)
	if err != nil {
		return nil, err
	}
	size := uint64(defaultBlockBytes)
	if s.scan.BlockBytes > 0 {
		size = uint64(s.scan.BlockBytes)
	}
	scan := &pb.Scan{
		StartRow:      s.at,
		StopRow:       s.scan.Stop,
		Filter:        filter,
		MaxResultSize: &size,
	}
	if s.scan.Family != "" {
		scan.Column = []*pb.Column{{Family: []byte(s.scan.Family)}}
	}
	if s.scan.Since > 0 {
		scan.TimeRange = &pb.TimeRange{From: proto.Uint64(uint64(s.scan.Since)), To: proto.Uint64(math.MaxInt64)}
	}
	scan.ProtoReflect().SetUnknown(readType)
	request := s.request()
	request.Region = regionSpecifier(loc.name)
	request.Scan = scan
	return request, nil
}

// nextRequest asks the open scanner for more.
func (s *scanner) nextRequest(loc *location) *pb.ScanRequest {
	request := s.request()
	request.Region = regionSpecifier(loc.name)
	request.ScannerId = proto.Uint64(s.server.id)
	return request
}

// request is what every call of a scan carries. next_call_seq is the guard
// against lost replies: 0 in the opening call, then one more in each.
func (s *scanner) request() *pb.ScanRequest {
	request := &pb.ScanRequest{
		NumberOfRows:            proto.Uint32(math.MaxInt32), // the size limits a reply
		NextCallSeq:             proto.Uint64(s.server.seq),
		ClientHandlesPartials:   proto.Bool(true),
		ClientHandlesHeartbeats: proto.Bool(true),
		TrackScanMetrics:        proto.Bool(true),
	}
	if left := int64(s.scan.MaxRows) - s.stats.Rows; s.scan.MaxRows > 0 && left < math.MaxInt32 {
		if s.rows.held {
			left++ // the server may have counted the held row already, or not
		}
		unknown := protowire.AppendTag(nil, fieldLimitOfRows, protowire.VarintType)
		request.ProtoReflect().SetUnknown(protowire.AppendVarint(unknown, uint64(left)))
	}
	return request
}

// closeTimeout bounds what is spent on a scanner that nobody reads any more;
// its lease ends it anyway.
const closeTimeout = 10 * time.Second

// closeScanner closes a server's scanner after its last call.
func (st *Store) closeScanner(server serverScanner) {
	ctx, cancel := context.WithTimeout(st.life, closeTimeout)
	defer cancel()
	if server.flight != nil {
		if st.servers.wait(ctx, server.conn, server.flight) != nil {
			return
		}
		response := server.flight.response.(*pb.ScanResponse)
		if response.ScannerId != nil {
			server.id, server.open = response.GetScannerId(), true
		}
		if scan, region := ends(response); scan || region {
			return
		}
	}
	if !server.open {
		return
	}
	call := newRPC(ctx, "Scan", &pb.ScanRequest{
		Region:       regionSpecifier(server.loc.name),
		ScannerId:    proto.Uint64(server.id),
		CloseScanner: proto.Bool(true),
	}, &pb.ScanResponse{})
	call.loc = server.loc
	st.servers.start(server.conn, call)
	if err := st.servers.wait(ctx, server.conn, call); err != nil {
		st.cfg.Logger.Debug("scanner not closed", "table", server.loc.table, "error", readable(err))
	}
}
