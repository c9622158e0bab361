package unchanged

import (
	"bytes"
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
)

const (
	// maxVersionRegions bounds the regions of one version token. Each costs a call.
	maxVersionRegions = 64

	fieldReadPoint = 11 // of ScanResponse: uint64; gohbase's schema lacks it
)

// Version implements store.Versioner. The token of a key range identifies a state by the
// opening of each region of the range and by the region's MVCC read point, which a server
// returns when a scanner is opened. That takes 0.15 ms a region and reads no row; the
// openings take one more call, see currentOpenings.
//
// # Why an equal read point is a proof
//
// Every change of a region (put, delete, append, increment, bulk load; flush and
// compaction too) is an MVCC transaction with the next number of the region. A scanner
// that was opened at read point n sees the changes up to n and no others, and the read
// point passes a change before its writer hears that it is done. So between two equal
// read points of one opening of a region nothing has become visible. Timestamps of
// cells, clocks and delete markers do not matter.
//
// # Why the opening is needed
//
// The numbers are those of one opening. If a region is closed in good order, the next
// opening begins above the last number of the one before. But numbers of a dead server,
// of changes that it had not made durable, may be assigned again. And a region of a
// snapshot that is cloned under the table's name has the name of the region that was
// dropped, and begins at the snapshot's number. So equal read points prove nothing
// without the opening, which only hbase:meta names, see encodeOpening.
//
// # Why the opening is read twice
//
// The master writes an opening to hbase:meta after the server has begun to serve the
// region. So a row that is read before a read point may name the previous opening, and
// so may one that is read after it. But the master writes that a region is to be
// closed, or opened, before the server hears of it. So if the row names the same
// opening of an open region before the read point was requested and after it was
// returned, the region was open like that all the time in between, and the read point
// is of this opening. (The first row may have been read long ago: openings do not come
// back.)
//
// The token is made of pairs of opening and read point that are proven like this, and
// of the connection, which does not outlive the server's process. It consists of the
// epochs under which such states were first observed, see regionHistory.
//
// # What changes without a transaction
//
// Cells of a family with a TTL expire without a transaction; see expiry.go. Some
// changes cannot be seen from outside: a TTL of single cells; coprocessors named in a
// server's own configuration; and a put that was hidden by a newer delete marker and
// becomes visible when a major compaction drops the marker, if the rows were read
// between the compaction's transaction and its change of files. OpenTSDB does none of
// these, except for the last one if it gives cells the time of their data: users of
// tokens exclude such rows.
//
// # Before it is proven
//
// If the regions seem to be in the states that were observed last, their token is
// returned while their openings are read for the second time. Otherwise Version returns
// once the token is proven: only proven states are observed.
//
// Source: HRegion, RegionScannerImpl, MultiVersionConcurrencyControl,
// RSRpcServices.newRegionScanner, AssignRegionHandler, TransitRegionStateProcedure
// and RegionStateStore of HBase 2.5.
func (p *Prover) Version(ctx context.Context, table, family string,
	r store.KeyRange) (token string, proof func() error, err error) {
	if err := p.life.Begin(); err != nil {
		return "", nil, err
	}
	defer p.life.Done()

	inner, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	err = retryReopened(func() (err error) {
		if p.cfg.Proof == ProofTimestamps {
			token, err = p.stampedVersion(inner, table, family, r)
			proof = proven
		} else {
			token, proof, err = p.exactVersion(inner, ctx, table, family, r)
		}
		return err
	})
	if err != nil {
		return "", nil, versionError(table, r, err)
	}
	return token, proof, nil
}

// proven is the proof of a token that is proven.
func proven() error { return nil }

func versionError(table string, r store.KeyRange, err error) error {
	return fmt.Errorf("cannot get a version token of table %q from key %x: %w", table, r.Start, calls.WithoutStack(err))
}

// retryReopened makes an attempt, and a second one if the cached openings were out of date. The first one
// has read the current ones, so two are enough unless regions keep moving.
func retryReopened(attempt func() error) error {
	err := attempt()
	if errors.Is(err, errReopened) {
		err = attempt()
	}
	return err
}

// exactVersion makes one attempt at a token of read points. It ends with inner, and a proof that continues
// after it has returned ends with ctx.
func (p *Prover) exactVersion(inner, ctx context.Context, table, family string,
	r store.KeyRange) (string, func() error, error) {
	s, err := p.stateOfRange(inner, table, family, r)
	if err != nil {
		return "", nil, err
	}

	// If the states are those observed last, their token is known, and may be used while
	// it is being proven.
	if token, ok := p.history.lastToken(family, s.states); ok {
		return token, p.proveLater(ctx, table, r, s), nil
	}
	if err := p.sameAfter(inner, table, s); err != nil {
		return "", nil, err
	}

	token, needsCheck, err := p.history.observe(family, s.states)
	if needsCheck {
		// Expiring cells change the visible rows while the states stay equal.
		err = p.checkNoExpiry(inner, table, family)
		// Other errors reveal nothing about the table: the next token checks again.
		if err == nil || errors.Is(err, ErrExpiring) {
			p.history.noteChecked(family, s.states, err)
		}
	}
	return token, proven, err
}

// proveLater starts to read the openings of regions whose read points were just
// read, and returns a proof: that they are still those from before.
func (p *Prover) proveLater(ctx context.Context, table string, r store.KeyRange, s *rangeState) (proof func() error) {
	done, err := make(chan struct{}), error(nil)
	p.life.Run(func() {
		defer close(done)

		ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
		defer cancel()
		if err = p.sameAfter(ctx, table, s); err != nil {
			err = versionError(table, r, err)
		}
	})

	return func() error {
		<-done
		return err
	}
}

// regionState is a region, an opening of it, and the progress of its changes.
type regionState struct {
	region    string // name
	opening   uint64 // opening.number
	conn      uint64 // calls.Conn.ID
	readPoint uint64
}

// rangeState is the observed state of the regions of a range.
type rangeState struct {
	began  int64 // when it was observed, by Prover.clock
	locs   []*regions.Location
	before []opening // of each region, as hbase:meta has named it before states
	states []regionState
}

// stateOfRange returns the states of a range's regions. They are proven once sameAfter has
// returned nil.
func (p *Prover) stateOfRange(ctx context.Context, table, family string, r store.KeyRange) (*rangeState, error) {
	// Without hbase:meta nothing can be proven, so no read point is fetched.
	if p.catalogReads.recentlySilent() {
		return nil, errMetaSilent
	}
	s := &rangeState{began: p.clock()}
	var err error
	if s.locs, err = p.locateAll(ctx, table, r); err != nil {
		return nil, err
	}
	// The openings are read first: only what they name before and after the read points
	// proves anything, see Version.
	if s.before, err = p.earlierOpenings(ctx, table, s.locs); err != nil {
		return nil, err
	}
	if s.states, err = p.regionStates(ctx, family, s.locs, s.before); err != nil {
		return nil, err
	}
	return s, nil
}

// sameAfter returns errReopened unless hbase:meta still names the openings of before.
func (p *Prover) sameAfter(ctx context.Context, table string, s *rangeState) error {
	after, err := p.currentOpenings(ctx, table, s.locs)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(s.before, after, func(a, b opening) bool { return a.number == b.number }) {
		return errReopened
	}
	return nil
}

// span returns the part of a range in one of its regions.
func (s *rangeState) span(i int, family string, r store.KeyRange) spanKey {
	start := r.Start
	if i > 0 { // so that ranges which begin before the region share its marks
		start = s.locs[i].Start
	}
	return spanKey{family, string(s.locs[i].Name), string(start), string(r.Stop)}
}

// locateAll returns the regions of a range, in key order.
func (p *Prover) locateAll(ctx context.Context, table string, r store.KeyRange) (locs []*regions.Location, err error) {
	for at := r.Start; ; {
		loc, err := p.router.Locate(ctx, table, at)
		if err != nil {
			return nil, err
		}
		locs = append(locs, loc)

		if at = loc.Stop; len(at) == 0 || len(r.Stop) != 0 && bytes.Compare(at, r.Stop) >= 0 {
			return locs, nil
		}
		if len(locs) == maxVersionRegions {
			return nil, fmt.Errorf("the range has more than %d regions", maxVersionRegions)
		}
	}
}

// regionStates returns the states of consecutive regions, if they are still open since
// these openings.
func (p *Prover) regionStates(ctx context.Context, family string, locs []*regions.Location,
	openings []opening) ([]regionState, error) {
	states := make([]regionState, len(locs))
	for i, loc := range locs {
		c, n, err := p.fetchReadPoint(ctx, loc, family)
		if err != nil {
			return nil, err
		}
		states[i] = regionState{region: string(loc.Name), opening: openings[i].number, conn: c.ID, readPoint: n}
	}
	return states, nil
}

// fetchReadPoint returns the read point of a region, and the connection that it came by. It makes
// one attempt.
func (p *Prover) fetchReadPoint(ctx context.Context, loc *regions.Location, family string) (*calls.Conn, uint64,
	error) {
	call := calls.New(ctx, "Scan", readPointRequest(loc, family), &pb.ScanResponse{})
	c, err := p.router.CallConn(ctx, loc, call)
	if err != nil {
		return nil, 0, err
	}

	n := decodeReadPoint(call.Response.(*pb.ScanResponse))
	if n == 0 {
		return nil, 0, ErrNoReadPoint
	}
	return c, n, nil
}

// readPointRequest returns a request that opens a scanner, requests no rows and closes it. Its time
// range holds no cells, so that the server opens no file.
func readPointRequest(loc *regions.Location, family string) *pb.ScanRequest {
	return &pb.ScanRequest{
		Region: calls.RegionSpecifier(loc.Name),
		Scan: &pb.Scan{
			Column:    []*pb.Column{{Family: []byte(family)}},
			TimeRange: &pb.TimeRange{From: proto.Uint64(0), To: proto.Uint64(1)},
		},
		NumberOfRows: proto.Uint32(0),
		NextCallSeq:  proto.Uint64(0),
		CloseScanner: proto.Bool(true),
	}
}

// decodeReadPoint returns the read point in a reply, or 0 if there is none. It is field
// 11, which gohbase's schema lacks and so leaves among the unknown ones.
func decodeReadPoint(response *pb.ScanResponse) uint64 {
	for value := range calls.UnknownFields(response, fieldReadPoint, protowire.VarintType) {
		v, _ := protowire.ConsumeVarint(value)
		return v //fault:read-point-ignored TestLaw_hbase
	}
	return 0
}
