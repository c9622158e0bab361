package hbase

import (
	"context"
	"math"
	"time"

	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/cellblock"
	"downpour/pushdown/store/hbase/regions"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// defaultBlockBytes is the size of a reply at which HBase scans best: larger
// replies are no faster, and those below a quarter of it are slower.
const defaultBlockBytes = 2 << 20

// fieldLimitOfRows is a field of ScanRequest that gohbase's schema lacks: uint32.
const fieldLimitOfRows = 11

// openRequest returns the request that opens a scanner in loc at resumeKey.
func (s *scanner) openRequest(loc *regions.Location) (*pb.ScanRequest, error) {
	// While the assembler drops the cells of other columns, the request has no column filter.
	filter, err := s.filters.forRegion(s.resumeKey, loc.Stop, s.rows.Columns == nil)
	if err != nil {
		return nil, err
	}
	size := uint64(defaultBlockBytes)
	if s.scan.BlockBytes > 0 {
		size = uint64(s.scan.BlockBytes)
	}

	scan := &pb.Scan{
		StartRow:      s.resumeKey,
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
	// PREAD, so that the first reply is no smaller; gohbase's schema lacks the field.
	calls.Pread(scan)

	request := s.newRequest()
	request.Region = calls.RegionSpecifier(loc.Name)
	request.Scan = scan
	return request, nil
}

// nextRequest returns the request for more rows of the open scanner.
func (s *scanner) nextRequest(loc *regions.Location) *pb.ScanRequest {
	request := s.newRequest()
	request.Region = calls.RegionSpecifier(loc.Name)
	request.ScannerId = proto.Uint64(s.server.id)
	return request
}

// newRequest returns what every request of a scan carries. next_call_seq is the
// guard against lost replies: it is 0 in the opening request and one more in each
// following one.
func (s *scanner) newRequest() *pb.ScanRequest {
	request := &pb.ScanRequest{
		NumberOfRows:            proto.Uint32(math.MaxInt32), // MaxResultSize limits a reply
		NextCallSeq:             proto.Uint64(s.server.seq),
		ClientHandlesPartials:   proto.Bool(true),
		ClientHandlesHeartbeats: proto.Bool(true),
		TrackScanMetrics:        proto.Bool(true),
	}

	// The first reply is a sample: it shows whether a column filter would pay.
	if c := s.rows.Columns; c != nil && !c.Sampled() {
		request.NumberOfRows = proto.Uint32(cellblock.SampleRows)
	}
	if left := int64(s.scan.MaxRows) - s.stats.Rows; s.scan.MaxRows > 0 && left < math.MaxInt32 {
		// It is unknown whether the server has counted an incomplete row. One row too many does no
		// harm: limitRows cuts it off.
		if s.rows.HoldsRow() {
			left++
		}
		unknown := protowire.AppendTag(nil, fieldLimitOfRows, protowire.VarintType)
		request.ProtoReflect().SetUnknown(protowire.AppendVarint(unknown, uint64(left)))
	}
	return request
}

// closeTimeout bounds the time to close a scanner that is no longer read; its lease ends it anyway.
const closeTimeout = 10 * time.Second

// closeScanner closes a server scanner, once its call in flight has ended.
func (st *Store) closeScanner(server serverScanner) {
	ctx, cancel := context.WithTimeout(st.life.Context(), closeTimeout)
	defer cancel()

	// The call may open the scanner, or end it.
	if server.inFlight != nil {
		if server.conn.Wait(ctx, server.inFlight) != nil {
			// The lease ends what may be open there.
			return
		}
		response := server.inFlight.Response.(*pb.ScanResponse)
		if response.ScannerId != nil {
			server.id, server.open = response.GetScannerId(), true
		}
		if endsRegion(response) {
			// At its end the server has closed it.
			return
		}
	}
	if !server.open {
		return
	}

	call := calls.New(ctx, "Scan", &pb.ScanRequest{
		Region:       calls.RegionSpecifier(server.loc.Name),
		ScannerId:    proto.Uint64(server.id),
		CloseScanner: proto.Bool(true),
	}, &pb.ScanResponse{})
	st.router.Send(server.conn, server.loc, call)
	_ = server.conn.Wait(ctx, call) // if that has failed, the lease ends the scanner
}
