package hbase

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"downpour/pushdown/store"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

const (
	// markRegions bounds the regions of one mark, each of which costs a call.
	markRegions = 64

	fieldReadPoint = 11 // of ScanResponse: uint64; gohbase's schema does not know it
)

var _ store.Versioner = (*Store)(nil)

// errNoReadPoint is a server older than HBase 1.3 or unlike it.
var errNoReadPoint = errors.New("the server tells no MVCC read point")

// Version names a state by the opening of each region of the range and by its MVCC
// read point, which a server tells whoever opens a scanner: 0.15 ms a region, and
// no row is read; the openings take one more call, see current.
//
// Why it is a proof. Every change of a region (put, delete, append, increment,
// bulk load; flush and compaction too) is an MVCC transaction with the next
// number of the region. A scanner opened at read point n sees the changes up to
// n and no other, and the read point passes a change before its writer hears
// that it is done. So between two equal read points of one opening of a region
// nothing has become visible. Timestamps of cells, clocks and delete markers play
// no part.
//
// Numbers are those of one opening. When a region is closed in good order the next
// opening begins above the last number of the one before. But a server that dies
// may leave numbers behind that are given away again, for changes that it had not
// made durable; and a region of a snapshot that is cloned under the table's name
// has the name of the region that was dropped, and begins at the number that the
// snapshot has. So equal read points prove nothing without the opening, which only
// hbase:meta names, see rowOfOpening.
//
// The master writes an opening there after the server has begun to serve: a row
// read before a read point may be of the opening before, and so may one that is
// read behind it. But it writes that a region is to be closed, or opened, before
// the server hears of it. So if a row names the same opening as that of an open
// region before a read point was asked for and after it was told, the region was
// open like that all the time between, and the read point is of this opening. (The
// row of before may have been read long ago: openings do not come back.) The mark
// is of pairs that are proven so, and of the connection, which does not outlive
// the server's process; the text that is returned is made of the numbers under
// which such states were noted, see seen.
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
// RSRpcServices.newRegionScanner, AssignRegionHandler, TransitRegionStateProcedure
// and RegionStateStore of HBase 2.5.
func (st *Store) Version(ctx context.Context, table, family string, r store.KeyRange) (string, error) {
	if err := st.enter(); err != nil {
		return "", err
	}
	defer st.wg.Done()
	ctx, cancel := context.WithTimeout(ctx, st.cfg.MarkPatience)
	defer cancel()
	states, err := st.states(ctx, table, family, r)
	if err != nil {
		return "", fmt.Errorf("mark of table %q from %x: %w", table, r.Start, readable(err))
	}
	mark, ask := st.seen.observe(family, states)
	if ask {
		if err := st.checkNoExpiry(ctx, table, family); err != nil {
			return "", err
		}
		st.seen.confirmNoExpiry(family, states)
	}
	return mark, nil
}

// regionState is a region, an opening of it, and how far its changes have come.
type regionState struct {
	region    string
	opening   uint64 // number of the opening
	conn      uint64
	readPoint uint64
}

var (
	// errReopened is a region that was opened anew while its state was looked at.
	errReopened = errors.New("regions are being opened anew")
	// errSilent is a server of hbase:meta that has kept a mark waiting just now.
	errSilent = errors.New("the server of hbase:meta was silent")
)

// states returns the state of each region of a range. What is not known of an
// opening before is known after the first attempt, so two attempts do unless
// regions go on moving.
func (st *Store) states(ctx context.Context, table, family string, r store.KeyRange) ([]regionState, error) {
	if st.looks.resting() {
		return nil, errSilent
	}
	locs, err := st.locateAll(ctx, table, r)
	if err != nil {
		return nil, err
	}
	before, err := st.known(ctx, table, locs)
	if err != nil {
		return nil, err
	}
	for range 2 {
		states, err := st.readPoints(ctx, family, locs, r.Start)
		if err != nil {
			return nil, err
		}
		after, err := st.current(ctx, table, locs)
		if err != nil {
			return nil, err
		}
		if proven(states, before, after) {
			return states, nil
		}
		before = after
	}
	return nil, errReopened
}

// proven tells whether each state was read between two looks at hbase:meta that
// name the same opening, and notes that opening.
func proven(states []regionState, before, after []opening) bool {
	for i := range states {
		if before[i].number != after[i].number {
			return false
		}
		states[i].opening = after[i].number
	}
	return true
}

// locateAll finds the regions of a range, one behind the other.
func (st *Store) locateAll(ctx context.Context, table string, r store.KeyRange) (locs []*location, err error) {
	for at := r.Start; ; {
		loc, err := st.locate(ctx, table, at)
		if err != nil {
			return nil, err
		}
		locs = append(locs, loc)
		if at = loc.stop; len(at) == 0 || len(r.Stop) != 0 && bytes.Compare(at, r.Stop) >= 0 {
			return locs, nil
		}
		if len(locs) == markRegions {
			return nil, fmt.Errorf("the range has more than %d regions", markRegions)
		}
	}
}

// readPoints asks each region.
func (st *Store) readPoints(ctx context.Context, family string, locs []*location, from []byte) ([]regionState, error) {
	states := make([]regionState, len(locs))
	for i, loc := range locs {
		c, n, err := st.askReadPoint(ctx, loc, family, from)
		if err != nil {
			return nil, err
		}
		states[i] = regionState{region: string(loc.name), conn: c.id, readPoint: n}
		from = loc.stop
	}
	return states, nil
}

// askReadPoint asks the server of a region, which holds key. It makes one attempt.
func (st *Store) askReadPoint(ctx context.Context, loc *location, family string, key []byte) (*conn, uint64, error) {
	call := newRPC(ctx, "Scan", readPointRequest(loc, family, key), &pb.ScanResponse{})
	call.table = loc.table
	c, err := st.exchange(ctx, loc, call)
	if err != nil {
		return nil, 0, err
	}
	n := readPoint(call.response.(*pb.ScanResponse))
	if n == 0 {
		return nil, 0, errNoReadPoint
	}
	return c, n, nil
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
