package hbase

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"downpour/pushdown/store"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Proof says by what Version may know that rows have not changed.
type Proof uint8

const (
	// ProofExact relies on read points alone: while anybody writes to a region, no
	// row of it is proven.
	ProofExact Proof = iota
	// ProofTimestamps also proves ranges of a region that is written to elsewhere, see
	// stampedVersion. It relies on what the operator says: that nobody writes cells or
	// deletions with explicit old timestamps, or deletes single versions.
	ProofTimestamps
)

const (
	// maxClockLag is how far a region server's clock may be behind this process's, in ms.
	// A healthy server seems to be behind by up to its report interval, 3 s by default.
	maxClockLag = 30_000
	// stampSlack is how much older than the moment at which it becomes visible a change's
	// timestamp may be, in ms: a server takes it before it syncs its log, for which it
	// waits at most 5 minutes, and its clock may be behind.
	stampSlack = 5*60_000 + maxClockLag
	// dearPause is how long a range is not scanned for changes after such a scan has
	// taken more than half of Config.VersionTimeout in vain, in ms.
	dearPause = 60_000
)

// spanKey names the part of a key range that lies in one region, and a family.
type spanKey struct{ family, region, start, stop string }

// mark is a moment at which the state of a span was observed. Its epoch stands for the
// cells that were visible then.
type mark struct {
	epoch uint64
	state regionState // when the span was last proven to be unchanged
	at    int64       // when that ask began, ms since 1970
	// files are the store's files, listed at some time between the first observation and
	// that ask; empty if they were not listed.
	files []string
	// notBefore is when files are worth listing again, ms since 1970: a cell of the span
	// that was found is so young that every scan for changes until then would find it.
	notBefore int64
	// unproven is a state of the region in which nothing could be proven: if the region
	// is still in it, it rests, and a new mark will do without timestamps.
	unproven regionState

	checked  bool  // the table's description was read during this opening
	expiring error // with checked: an ErrExpiring, nil if nothing expires
}

// markTable keeps the last mark of each span.
type markTable struct {
	mu    sync.Mutex
	marks map[spanKey]mark
}

func (m *markTable) find(key spanKey) mark {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.marks[key]
}

// replace stores a newer mark and returns its epoch. If it continues last, whose epoch
// it has, and another ask has observed a change of the span meanwhile, it stores nothing
// and returns an epoch that no token equals.
func (m *markTable) replace(key spanKey, last, now mark) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()

	// What is forgotten gets a new epoch, so no token equals one from before.
	if m.marks == nil || len(m.marks) > maxHistory {
		m.marks = map[spanKey]mark{}
	}
	current, ok := m.marks[key]
	switch {
	case now.epoch != last.epoch:
		// A new state: whichever of two asks is the last to store its own.
	case !ok || current.epoch != last.epoch:
		return epochs.Add(1)
	case current.at > now.at:
		// Another ask has proven the same epoch later.
		return now.epoch
	}
	m.marks[key] = now
	return now.epoch
}

// stampedVersion is EarlyVersion with ProofTimestamps, proven when it returns. A token
// consists of the epoch of each span.
//
// # Why no cell is a proof
//
// A raw scan returns puts and delete markers of all versions. HBase stamps a change
// with its server's clock and makes it visible within stampSlack of that. So if a raw
// scan from the mark's time less stampSlack finds nothing in a span, then nothing became
// visible there since the mark, except for what has no new timestamp: cells and
// deletions with explicit timestamps, and a deletion of one version, whose marker takes
// the timestamp of the put. The operator promises that there are none, see
// ProofTimestamps; own changes of that kind leave a marker that is found, see changeMarker.
//
// # Why files are listed
//
// Delete markers go with a compaction of all files of a store, and never otherwise. So
// none has gone as long as one of the files that were listed at the mark is still
// listed after the scan. A file that was loaded in bulk brings cells of any timestamp;
// its name tells.
//
// # What else is checked
//
// The opening of the region is the mark's, before and after the scan: tables that are
// restored, truncated or altered open their regions again. No family expires. The
// servers' clocks are right, and none has applied edits replicated from another
// cluster, which have timestamps from there (see clusterHealth).
func (st *Store) stampedVersion(ctx context.Context, table, family string, r store.KeyRange) (string, error) {
	if st.catalogReads.recentlySilent() {
		return "", errMetaSilent
	}
	for attempt := 1; ; attempt++ {
		token, err := st.tryStampedVersion(ctx, table, family, r)
		// After the first attempt the cached openings are up to date.
		if !errors.Is(err, errReopened) || attempt == 2 {
			return token, err
		}
	}
}

func (st *Store) tryStampedVersion(ctx context.Context, table, family string, r store.KeyRange) (string, error) {
	began := st.clock()
	locs, err := st.locateAll(ctx, table, r)
	if err != nil {
		return "", err
	}
	before, err := st.earlierOpenings(ctx, table, locs)
	if err != nil {
		return "", err
	}
	states, err := st.readPoints(ctx, family, locs, before, r.Start)
	if err != nil {
		return "", err
	}

	observed := make([]observedSpan, len(locs))
	for i, loc := range locs {
		s := &observed[i]
		s.key = spanKey{family, string(loc.name), string(maxKey(loc.start, r.Start)), string(minStop(loc.stop, r.Stop))}
		s.last = st.marks.find(s.key)
		if err := st.observeSpan(ctx, s, loc, states[i], began); err != nil {
			return "", err
		}
	}
	if err := st.checkSpans(ctx, table, family, observed); err != nil {
		return "", err
	}

	// Only what hbase:meta names before and after all of this proves anything, see Version.
	after, err := st.currentOpenings(ctx, table, locs)
	if err != nil {
		return "", err
	}
	if !sameOpenings(before, after) {
		return "", errReopened
	}

	var token []byte
	var unproven error
	for _, s := range observed {
		token = binary.AppendUvarint(token, st.marks.replace(s.key, s.last, s.now))
		unproven = cmp.Or(unproven, s.unproven)
	}
	// Of a first ask nobody wants a proof.
	if unproven != nil {
		return "", unproven
	}
	return string(token), nil
}

// observedSpan is what an ask has found out about a span. If now has the epoch of last,
// nothing has changed in between.
type observedSpan struct {
	key       spanKey
	last, now mark
	unproven  error // why timestamps could not prove anything, if somebody wants to know it
}

func (s *observedSpan) unchanged() bool { return s.now.epoch == s.last.epoch }

// observeSpan finds out whether a span has changed since its last mark, and sets s.now.
func (st *Store) observeSpan(ctx context.Context, s *observedSpan, loc *location, state regionState, began int64) error {
	s.now = s.last
	s.now.state, s.now.at = state, max(began, s.last.at)
	if s.last.state == state {
		return nil // equal read points: nothing in the region has changed
	}

	if s.last.state.opening != state.opening {
		s.now = mark{state: state, at: began}
	} else if len(s.last.files) > 0 && began >= s.last.notBefore {
		same, err := st.scanForChanges(ctx, s, loc, began)
		if same || err != nil {
			return err
		}
		// The mark stays, because the cause may pass, unless the region rests.
		if s.unproven != nil && s.last.unproven != state {
			s.now = s.last
			s.now.unproven = state
			return nil
		}
		s.unproven = nil
	}

	// A new state. Its files are not worth a call while every scan for changes would find
	// the same young cell.
	s.now.epoch, s.now.state, s.now.at, s.now.files = epochs.Add(1), state, began, nil
	if began < s.now.notBefore {
		return nil
	}
	if err := st.health.check(ctx, st, loc.addr); err != nil {
		// The mark has no files, so nothing but an equal read point continues it.
		if s.last.epoch != 0 && s.last.unproven != state {
			s.unproven = err
		}
		return nil
	}
	var err error
	s.now.files, err = st.storeFiles(ctx, loc, s.key.family)
	return err
}

// scanForChanges tells whether a span that has a mark with files is the same as at the
// mark. If so, it sets s.now.
func (st *Store) scanForChanges(ctx context.Context, s *observedSpan, loc *location, began int64) (same bool, err error) {
	if err := st.health.check(ctx, st, loc.addr); err != nil {
		s.unproven = err
		return false, nil
	}

	scanned := time.Now()
	c, found, err := st.newestSince(ctx, loc, s.key, s.last.at-stampSlack)
	if err != nil {
		// The next asks do without a scan that is as dear as reading.
		if errors.Is(err, errDearProof) || ctx.Err() != nil && time.Since(scanned) > st.cfg.VersionTimeout/2 {
			paused := s.last
			paused.notBefore = began + dearPause
			st.marks.replace(s.key, s.last, paused)
		}
		return false, fmt.Errorf("cannot look for changes of region %q: %w", loc.name, err)
	}
	if found.stamp > 0 {
		// A timestamp from the future is no reason to wait for ever.
		s.now.notBefore = min(found.stamp, began) + stampSlack
		return false, nil
	}

	files, err := st.storeFiles(ctx, loc, s.key.family)
	if err != nil || !sameStore(s.last.files, files) {
		return false, err
	}
	s.now.files = files
	s.now.state.conn, s.now.state.readPoint = c.id, found.readPoint
	return true, nil
}

// sameStore tells from the files of a store at two times that no compaction has dropped
// delete markers in between, and that no file was loaded in bulk. Such a file is named
// <hash>_SeqId_<n>_, see HRegion.bulkLoadHFiles.
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

// checkSpans returns ErrExpiring if what is visible of an unchanged span may change
// without a write. A table that is altered opens its regions again, so its description
// is read once an opening.
func (st *Store) checkSpans(ctx context.Context, table, family string, spans []observedSpan) error {
	asked, expiring := false, error(nil)
	for i := range spans {
		s := &spans[i]
		if !s.unchanged() {
			continue
		}
		if !s.now.checked {
			if !asked {
				if expiring = st.checkNoExpiry(ctx, table, family); expiring != nil && !errors.Is(expiring, ErrExpiring) {
					return expiring
				}
				asked = true
			}
			s.now.checked, s.now.expiring = true, expiring
		}
		if s.now.expiring != nil {
			st.marks.replace(s.key, s.last, s.now)
			return s.now.expiring
		}
	}
	return nil
}

// changeFound is what a scan for changes has returned.
type changeFound struct {
	readPoint uint64
	stamp     int64 // of the first cell that was found, ms since 1970; 0 for none
}

// newestSince scans a span for puts and deletions with a timestamp from since on. One
// is enough. It makes one attempt.
func (st *Store) newestSince(ctx context.Context, loc *location, span spanKey, since int64) (*conn, changeFound, error) {
	scan := &pb.Scan{
		StartRow:    []byte(span.start),
		StopRow:     []byte(span.stop),
		TimeRange:   &pb.TimeRange{From: proto.Uint64(uint64(max(since, 0))), To: proto.Uint64(math.MaxInt64)},
		MaxVersions: proto.Uint32(math.MaxInt32),
		BatchSize:   proto.Uint32(1), // cells
		// Scan.setRaw: delete markers, and what they mask, are returned too.
		Attribute: []*pb.NameBytesPair{{Name: proto.String("_raw_"), Value: []byte{0xff}}},
	}
	if span.family != "" {
		scan.Column = []*pb.Column{{Family: []byte(span.family)}}
	}
	call := newRPC(ctx, "Scan", &pb.ScanRequest{
		Region:       regionSpecifier(loc.name),
		Scan:         scan,
		NumberOfRows: proto.Uint32(1),
		NextCallSeq:  proto.Uint64(0),
		CloseScanner: proto.Bool(true),
		// With them the server ends a scan that takes too long, instead of going on when
		// nobody waits any more.
		ClientHandlesPartials:   proto.Bool(true),
		ClientHandlesHeartbeats: proto.Bool(true),
	}, &pb.ScanResponse{})
	call.table = loc.table
	c, err := st.callConn(ctx, loc, call)
	if err != nil {
		return nil, changeFound{}, err
	}

	response := call.response.(*pb.ScanResponse)
	found := changeFound{readPoint: decodeReadPoint(response)}
	if found.readPoint == 0 {
		return nil, found, errNoReadPoint
	}
	rows, err := decodeRows(call)
	if err != nil {
		return nil, found, err
	}
	for _, row := range rows {
		for _, cell := range row.Cells {
			found.stamp = max(found.stamp, cell.Timestamp, 1)
		}
	}
	// Without a cell, it proves something only if the server has come to the end.
	if found.stamp == 0 && (response.GetHeartbeatMessage() || response.MoreResultsInRegion == nil || response.GetMoreResultsInRegion()) {
		return nil, found, errDearProof
	}
	return c, found, nil
}

// storeFiles returns the paths of the files of a region's store. GetStoreFile is a
// method of AdminService, whose messages gohbase lacks: the request has the region in
// field 1 and families in field 2, the response paths in field 1.
func (st *Store) storeFiles(ctx context.Context, loc *location, family string) ([]string, error) {
	region, err := proto.Marshal(regionSpecifier(loc.name))
	if err != nil {
		return nil, err
	}
	fields := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), region)
	if family != "" {
		fields = protowire.AppendString(protowire.AppendTag(fields, 2, protowire.BytesType), family)
	}
	request := &emptypb.Empty{}
	request.ProtoReflect().SetUnknown(fields)

	call := newRPC(ctx, "GetStoreFile", request, &emptypb.Empty{})
	call.table, call.loc = loc.table, loc
	c, err := st.serverAdmins.get(ctx, loc.addr)
	if err == nil {
		st.serverAdmins.send(c, call)
		err = st.serverAdmins.wait(ctx, c, call)
	}
	if err != nil {
		if c != nil && classify(err) == classReconnect {
			st.serverAdmins.drop(c)
		}
		return nil, fmt.Errorf("cannot list the files of region %q: %w", loc.name, err)
	}

	var files []string
	for b := []byte(call.response.ProtoReflect().GetUnknown()); len(b) > 0; {
		number, kind, n := protowire.ConsumeField(b)
		if n < 0 {
			return nil, fmt.Errorf("%w: GetStoreFile of region %q", errReply, loc.name)
		}
		if number == 1 && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(b)
			path, _ := protowire.ConsumeBytes(b[tag:])
			files = append(files, string(path))
		}
		b = b[n:]
	}
	return files, nil
}

// clock returns the time by which asks are dated, in ms since 1970.
func (st *Store) clock() int64 {
	if st.now != nil {
		return st.now()
	}
	return time.Now().UnixMilli()
}

func maxKey(a, b []byte) []byte {
	if bytes.Compare(a, b) > 0 {
		return a
	}
	return b
}

// minStop returns the lower of two ends of key ranges, of which an empty one is the
// table's end.
func minStop(a, b []byte) []byte {
	if len(b) == 0 || len(a) != 0 && bytes.Compare(a, b) < 0 {
		return a
	}
	return b
}
