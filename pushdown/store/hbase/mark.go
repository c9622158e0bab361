package hbase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"downpour/pushdown/store"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

const (
	// markPatience bounds a mark. It only saves work: a server that does not
	// answer this fast is better asked for the rows.
	markPatience = time.Second
	// markRegions bounds the regions of one mark, each of which costs a call.
	markRegions = 64

	fieldReadPoint = 11 // of ScanResponse: uint64; gohbase's schema does not know it
)

var _ store.Marker = (*Store)(nil)

// errNoReadPoint is a server older than HBase 1.3 or unlike it.
var errNoReadPoint = errors.New("the server tells no MVCC read point")

// Mark names a state by the MVCC read point of each region of the range, which
// a server tells whoever opens a scanner: 0.15 ms a region, and no row is read.
//
// Why it is a proof. Every change of a region (put, delete, append, increment,
// bulk load; flush and compaction too) is an MVCC transaction with the next
// number of the region. A scanner opened at read point n sees the changes up to
// n and no other, and the read point passes a change before its writer hears
// that it is done. So between two equal read points of one region nothing has
// become visible. Timestamps of cells, clocks and delete markers play no part.
//
// Numbers are those of one opening of a region. When a region is closed in good
// order the next opening begins above the last number of the one before, which
// lies in a file of the region, wherever it is opened. A server that dies may
// leave numbers behind that are given away again, for changes that it had not
// made durable (TextImporter's, say); so the mark names the connection too,
// which does not outlive the server's process. The mark that is returned is made
// of the numbers under which such states were noted, see seen.
//
// What is visible may also change without a transaction, by time: cells of a
// family with a TTL go by themselves. See lasting. What cannot be seen from
// outside: a TTL that single cells have, coprocessors named in a server's own
// configuration; and a put that hid behind a newer delete marker and comes to
// light when a major compaction drops the marker, if the rows were read in the
// moment between the compaction's transaction and its change of files. OpenTSDB
// does none of these, except the last where it gives cells the time of their
// data: what relies on marks leaves such rows alone.
//
// Source: HRegion, RegionScannerImpl, MultiVersionConcurrencyControl,
// RSRpcServices.newRegionScanner of HBase 2.5.
func (st *Store) Mark(ctx context.Context, table, family string, r store.KeyRange) (string, error) {
	if err := st.enter(); err != nil {
		return "", err
	}
	defer st.wg.Done()
	ctx, cancel := context.WithTimeout(ctx, st.markPatience)
	defer cancel()
	var states []regionState
	for at := r.Start; ; {
		loc, state, err := st.regionState(ctx, table, family, at)
		if err != nil {
			return "", fmt.Errorf("mark of table %q at %x: %w", table, at, readable(err))
		}
		states = append(states, state)
		if at = loc.stop; len(at) == 0 || len(r.Stop) != 0 && bytes.Compare(at, r.Stop) >= 0 {
			break
		}
		if len(states) == markRegions {
			return "", fmt.Errorf("mark of table %q: the range has more than %d regions", table, markRegions)
		}
	}
	mark, ask := st.seen.note(family, states)
	if ask {
		if err := st.lasting(ctx, table, family); err != nil {
			return "", err
		}
		st.seen.confirm(family, states)
	}
	return mark, nil
}

// regionState is a region, an opening of it, and how far its changes have come.
type regionState struct {
	region    string
	conn      uint64
	readPoint uint64
}

// regionState asks the region of key. It makes one attempt.
func (st *Store) regionState(ctx context.Context, table, family string, key []byte) (*location, regionState, error) {
	loc, err := st.locate(ctx, table, key)
	if err != nil {
		return nil, regionState{}, err
	}
	call := newRPC(ctx, "Scan", readPointRequest(loc, family, key), &pb.ScanResponse{})
	call.table, call.loc = table, loc
	c, err := st.servers.get(ctx, loc.addr)
	if err == nil {
		st.servers.start(c, call)
		err = st.servers.wait(ctx, c, call)
	}
	st.learn(loc, c, err)
	if err != nil {
		return nil, regionState{}, err
	}
	n := readPoint(call.response.(*pb.ScanResponse))
	if n == 0 {
		return nil, regionState{}, errNoReadPoint
	}
	return loc, regionState{string(loc.name), c.id, n}, nil
}

// readPointRequest opens a scanner over cells of a time that none has, so that
// the server opens no file, asks for no rows and closes it.
func readPointRequest(loc *location, family string, key []byte) *pb.ScanRequest {
	scan := &pb.Scan{StartRow: key, TimeRange: &pb.TimeRange{From: proto.Uint64(0), To: proto.Uint64(1)}}
	if family != "" {
		scan.Column = []*pb.Column{{Family: []byte(family)}}
	}
	return &pb.ScanRequest{
		Region:       regionSpecifier(loc.name),
		Scan:         scan,
		NumberOfRows: proto.Uint32(0),
		NextCallSeq:  proto.Uint64(0),
		CloseScanner: proto.Bool(true),
	}
}

// readPoint is field 11 of a reply, 0 without.
func readPoint(response *pb.ScanResponse) uint64 {
	for b := []byte(response.ProtoReflect().GetUnknown()); len(b) > 0; {
		number, kind, n := protowire.ConsumeField(b)
		if n < 0 {
			return 0
		}
		if number == fieldReadPoint && kind == protowire.VarintType {
			_, _, tag := protowire.ConsumeTag(b)
			v, _ := protowire.ConsumeVarint(b[tag:])
			return v
		}
		b = b[n:]
	}
	return 0
}
