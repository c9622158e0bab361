package unchanged

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/cellblock"
	"downpour/pushdown/store/hbase/regions"

	"github.com/tsuna/gohbase/pb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"
)

const (
	// maxClockLag is how far a region server's clock may be behind prover.clock, in ms.
	// A healthy server seems to be behind by up to its report interval, 3 s by default.
	maxClockLag = 30_000
	// maxStampAge is how old the timestamp of a change may be when the change becomes visible, in
	// ms: a server takes the timestamp before it syncs its log, for which it waits at most 5
	// minutes (hbase.regionserver.wal.sync.timeout), and its clock may be behind.
	maxStampAge = 5*60_000 + maxClockLag
	// slowPause is how long a span is not scanned for changes after such a scan did not complete,
	// in ms.
	slowPause = 60_000
	// spansAtOnce bounds the spans of one version token that are checked concurrently.
	spansAtOnce = 4
)

// spanKey names the part of a key range in one region, and a family. The stop may be after the
// region.
type spanKey struct{ family, region, start, stop string }

// mark is a moment at which the state of a span was observed. Its epoch represents the cells that
// were visible then.
type mark struct {
	epoch uint64
	state regionState // when the span was last proven to be unchanged
	began int64       // when the check began that scanned for changes, or made the mark; ms since 1970
	// files are the store's files, listed after at; empty if they were not listed. Marks
	// share them.
	files []string
	// nextScan is the earliest time of the next scan for changes, ms since 1970. Each scan before it
	// would find a known young cell, or take too long.
	nextScan int64
	// clocksFailedIn is the state of the region when a check of the servers' clocks last failed. If the
	// region is still in this state, nothing writes to it, and a new mark needs no timestamps.
	clocksFailedIn regionState

	tableChecked bool  // the table's description was read during this opening
	expiryError  error // if tableChecked: an ErrExpiring, or nil if nothing expires
}

// markTable keeps the last mark of each span.
type markTable struct {
	mu    sync.Mutex
	marks map[spanKey]mark
	files map[string][]string // last listed, by family and region
}

// shared returns the list of a store's files that other marks have, if it is the same:
// regions with many spans and files would hold a copy for each span.
func (m *markTable) shared(family, region string, files []string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()

	key := family + ":" + region
	if slices.Equal(m.files[key], files) {
		return m.files[key]
	}
	if m.files == nil || len(m.files) > maxHistory {
		m.files = map[string][]string{}
	}
	m.files[key] = files
	return files
}

func (m *markTable) find(key spanKey) mark {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.marks[key]
}

// replace stores a newer mark and returns its epoch. If it continues last, whose epoch
// it has, and another check has observed a change of the span since, it stores nothing
// and returns an epoch that no token equals.
func (m *markTable) replace(key spanKey, last, now mark) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()

	// A dropped span gets a new epoch, so no token equals an earlier one.
	if m.marks == nil || len(m.marks) > maxHistory {
		m.marks = map[spanKey]mark{}
	}
	current, ok := m.marks[key]
	switch {
	case now.epoch != last.epoch:
		// A new state: the last of two checks stores its own.
	case !ok || current.epoch != last.epoch:
		return epochs.Add(1)
	case current.began > now.began:
		// Another check has proven the same epoch later.
		return now.epoch
	}
	m.marks[key] = now
	return now.epoch
}

// stampedVersion makes one attempt at a token by timestamps. It is proven when it returns, and consists
// of the epoch of each span, for which a new mark is stored. The error is errReopened if a region
// was opened again during the checks, ErrExpiring if cells of the table may vanish by themselves, or the
// reason why clocks or scans prove nothing now.
//
// # Why no cell is a proof
//
// A raw scan returns puts and delete markers of all versions. HBase stamps a change with
// its server's clock and makes it visible within maxStampAge of that. So if a raw scan
// from the mark's time less maxStampAge finds nothing in a span, then nothing became
// visible there since the mark, except for what has no new timestamp: cells and
// deletions with explicit timestamps, and a deletion of one version, whose marker takes
// the timestamp of the put. The operator promises that there are none, see
// ProofTimestamps; our own changes of that kind leave a marker that is found, see
// changeMarker.
//
// # Why files are listed
//
// HBase's usual stores drop delete markers in a compaction of all their files, and never
// otherwise. So none was dropped as long as one of the files that were listed at the
// mark is still listed after the scan. A file that was loaded in bulk brings cells of
// any timestamp; its name shows that.
//
// # Other checks
//
// The opening of the region is the mark's, before and after the scan: tables that are
// restored, truncated or altered open their regions again. The family's cells do not
// expire, and its stores are of the usual kind. The servers' clocks are right, and none
// has applied edits replicated from another cluster, which have timestamps from there
// (see clusterHealth).
func (p *Prover) stampedVersion(ctx context.Context, table, family string, r store.KeyRange) (string, error) {
	s, err := p.stateOfRange(ctx, table, family, r)
	if err != nil {
		return "", err
	}
	spans := p.observedSpans(s, family, r)
	work, inner := errgroup.WithContext(ctx)
	work.SetLimit(spansAtOnce)
	for _, span := range spans {
		work.Go(func() error { return p.observeSpan(inner, span) })
	}
	if err := work.Wait(); err != nil {
		return "", err
	}
	if err := p.noteExpiring(ctx, table, family, spans); err != nil {
		return "", err
	}

	// Read points of a region count only within one opening. So an opening is a proof only if
	// hbase:meta names it before and after all of this.
	if err := p.sameAfter(ctx, table, s); err != nil {
		return "", err
	}
	return p.storeMarks(spans)
}

// observedSpans returns the spans of a key range, one for each of its regions, with their last marks.
func (p *Prover) observedSpans(s *rangeState, family string, r store.KeyRange) []*observedSpan {
	spans := make([]*observedSpan, len(s.locs))
	for i, loc := range s.locs {
		key := s.span(i, family, r)
		spans[i] = &observedSpan{key: key, loc: loc, began: s.began, state: s.states[i], lastMark: p.marks.find(key)}
	}
	return spans
}

// storeMarks stores the new mark of each span, also if it then returns why none of them proves anything: the
// next check begins from the new marks. The token consists of the marks' epochs.
func (p *Prover) storeMarks(spans []*observedSpan) (string, error) {
	var token []byte
	var err error
	for _, s := range spans {
		token = binary.AppendUvarint(token, p.marks.replace(s.key, s.lastMark, s.newMark))
		err = cmp.Or(err, s.clockError, s.newMark.expiryError)
	}
	if err != nil {
		return "", err
	}
	return string(token), nil
}

// observedSpan is a span during a check, and its result.
type observedSpan struct {
	key      spanKey
	loc      *regions.Location
	began    int64       // start of the check, ms since 1970
	state    regionState // during the check, before anything else
	lastMark mark        // of the check before; zero if there is none

	newMark    mark  // to be stored; it has the epoch of lastMark if nothing has changed in between
	clockError error // why timestamps prove nothing now; nil if they do
}

// unchanged reports whether the check has proven that the span's cells are those of its last mark.
func (s *observedSpan) unchanged() bool { return s.newMark.epoch == s.lastMark.epoch }

// observeSpan checks whether a span has changed since s.lastMark, and sets s.newMark, which has the epoch
// of s.lastMark only if it has not. It sets s.clockError if the servers' clocks are not known to be right.
func (p *Prover) observeSpan(ctx context.Context, s *observedSpan) error {
	// Equal read points: nothing in the region has changed. The mark keeps its time, because
	// the clocks of this moment were not checked.
	if s.newMark = s.lastMark; s.lastMark.state == s.state {
		return nil
	}

	// Most spans are checked once, so neither the first check nor the first one of an opening
	// spends a call on more than the read point.
	s.newMark = mark{epoch: epochs.Add(1), state: s.state, began: s.began}
	if s.lastMark.state.opening != s.state.opening {
		return nil
	}
	s.newMark.tableChecked, s.newMark.expiryError = s.lastMark.tableChecked, s.lastMark.expiryError
	s.newMark.nextScan = s.lastMark.nextScan
	if s.began < s.newMark.nextScan {
		return nil
	}

	if err := p.health.check(ctx, p, s.loc.Addr); err != nil {
		// The last mark is kept, because the cause may be temporary. Only a region without writes
		// gets a new one, which equal read points will continue.
		if s.lastMark.clocksFailedIn != s.state {
			s.clockError = err
			s.newMark = s.lastMark
			s.newMark.clocksFailedIn = s.state
		}
		return nil
	}

	if len(s.lastMark.files) > 0 {
		if err := p.scanForChanges(ctx, s); err != nil || s.unchanged() {
			return err
		}
		// While the scan of the next check would find the same young cell, it gets no files.
		if s.began < s.newMark.nextScan {
			return nil
		}
	}
	var err error
	s.newMark.files, err = p.storeFiles(ctx, s.loc, s.key.family)
	return err
}

// scanForChanges scans a span for changes since s.lastMark. If there are none, it gives s.newMark the epoch
// of s.lastMark. If there is one, it sets s.newMark.nextScan to the time until which scans would find it.
func (p *Prover) scanForChanges(ctx context.Context, s *observedSpan) error {
	since := s.lastMark.began - maxStampAge //fault:clocks-are-alike TestStampedVersion_changes
	stamp, err := p.changeSince(ctx, s.loc, s.key, since)
	if err != nil {
		// The next checks skip a scan that takes as long as reading may. Then they begin from a
		// later mark: if a compaction has put cells of old and of recent times into one file, the
		// scan is slow from each mark that is as old as the recent ones.
		if errors.Is(err, errSlowProof) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			s.newMark.nextScan = s.began + slowPause
			p.marks.replace(s.key, s.lastMark, s.newMark)
		}
		return fmt.Errorf("cannot look for changes of region %q: %w", s.loc.Name, err)
	}
	if stamp > 0 {
		// A timestamp from the future is no reason to wait for ever.
		s.newMark.nextScan = min(stamp, s.began) + maxStampAge
		return nil
	}

	files, err := p.storeFiles(ctx, s.loc, s.key.family)
	if err != nil {
		return err
	}
	if sameStore(s.lastMark.files, files) { //fault:files-unseen TestStampedVersion_changes
		s.newMark.epoch, s.newMark.files = s.lastMark.epoch, files
	}
	return nil
}

// noteExpiring notes in the new marks whether what is visible of an unchanged span may change without
// a new timestamp, because the table's description has a TTL, a coprocessor or an unusual store
// engine. A table that is altered opens its regions again, so its description is read once an
// opening.
func (p *Prover) noteExpiring(ctx context.Context, table, family string, spans []*observedSpan) error {
	if slices.ContainsFunc(spans, func(s *observedSpan) bool { return s.unchanged() && !s.newMark.tableChecked }) {
		expiring := p.checkNoExpiry(ctx, table, family)
		// Other errors reveal nothing about the table: the next check reads it again.
		if expiring != nil && !errors.Is(expiring, ErrExpiring) {
			return expiring
		}
		for _, s := range spans {
			s.newMark.tableChecked, s.newMark.expiryError = true, expiring
		}
	}
	return nil
}

// changeSince scans a span for puts and deletions with a timestamp from since on, in ms
// since 1970. It returns the timestamp of the first cell, 0 if there is none. It makes one
// attempt.
func (p *Prover) changeSince(ctx context.Context, loc *regions.Location, span spanKey, since int64) (int64, error) {
	call := calls.New(ctx, "Scan", changeRequest(loc, span, since), &pb.ScanResponse{})
	if _, err := p.router.CallConn(ctx, loc, call); err != nil {
		return 0, err
	}
	return firstStamp(call.Response.(*pb.ScanResponse), call.Cells)
}

// firstStamp returns the timestamp of the first cell of a reply to changeRequest, 0 if none follows
// in the region.
func firstStamp(response *pb.ScanResponse, cells []byte) (int64, error) {
	rows, err := cellblock.Rows(cells, response.GetCellsPerResult())
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		for _, cell := range row.Cells {
			return max(cell.Timestamp, 1), nil
		}
	}

	// No cell is a proof only if the server has reached the end of the region.
	if response.GetHeartbeatMessage() || response.MoreResultsInRegion == nil || response.GetMoreResultsInRegion() {
		return 0, errSlowProof
	}
	return 0, nil
}

// changeRequest returns the request of changeSince. It is a raw scan, whose first cell
// ends it.
func changeRequest(loc *regions.Location, span spanKey, since int64) *pb.ScanRequest {
	scan := &pb.Scan{
		Column:      []*pb.Column{{Family: []byte(span.family)}},
		StartRow:    []byte(span.start),
		StopRow:     []byte(span.stop),
		TimeRange:   &pb.TimeRange{From: proto.Uint64(uint64(max(since, 0))), To: proto.Uint64(math.MaxInt64)},
		MaxVersions: proto.Uint32(math.MaxInt32),
		BatchSize:   proto.Uint32(1), // cells
		// Queries do not read the rows that it passes.
		CacheBlocks: proto.Bool(false),
	}
	calls.Raw(scan) //fault:deletions-unseen TestStampedVersion_changes
	// With the default the server would end its only reply at 256 KiB of cells that are out of
	// the time range, which proves nothing: flushes and compactions soon put old and recent
	// cells into one file.
	calls.Pread(scan)
	return &pb.ScanRequest{
		Region:       calls.RegionSpecifier(loc.Name),
		Scan:         scan,
		NumberOfRows: proto.Uint32(1),
		NextCallSeq:  proto.Uint64(0),
		CloseScanner: proto.Bool(true),
		// With them the server ends a scan that takes too long, instead of continuing unawaited.
		ClientHandlesPartials:   proto.Bool(true),
		ClientHandlesHeartbeats: proto.Bool(true),
	}
}

// clock returns the time of checks, in ms since 1970. Once the store is open it only
// advances, evenly: when this machine's clock is set, marks from before and after must
// not differ by that. If it is wrong, the servers' clocks seem wrong, or young cells
// stay young for longer.
func (p *Prover) clock() int64 {
	if p.cfg.Now != nil {
		return p.cfg.Now()
	}
	return p.opened.UnixMilli() + time.Since(p.opened).Milliseconds()
}
