package hbase

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"downpour/pushdown/store"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// opening is one opening of a region, as its row of hbase:meta names it.
type opening struct {
	number uint64       // of the process, from eras; equal only for equal cells
	cells  string       // of the row, see rowOfOpening
	as     catalogState // the state of hbase:meta in which the row said so
}

// catalogState is how far the changes of hbase:meta have come. While it stays,
// no row of hbase:meta changes: the table is never replaced, so the proof needs
// no more than a connection, which does not outlive the server's process, and a
// read point; see Mark.
type catalogState struct {
	conn      uint64
	readPoint uint64
}

// openings remembers the last known opening of each region, by name.
type openings struct {
	mu      sync.Mutex
	regions map[string]opening
}

// find returns the openings of regions, false if one is not known.
func (o *openings) find(locs []*location) ([]opening, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	found := make([]opening, len(locs))
	for i, loc := range locs {
		var ok bool
		if found[i], ok = o.regions[string(loc.name)]; !ok {
			return nil, false
		}
	}
	return found, true
}

// note takes down what the row of a region says and returns it as an opening,
// with the number of before if the row says the same.
func (o *openings) note(loc *location, cells string, as catalogState) opening {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.regions == nil || len(o.regions) > mostSeen {
		o.regions = map[string]opening{}
	}
	at := o.regions[string(loc.name)]
	if at.number == 0 || at.cells != cells {
		at.number, at.cells = epochs.Add(1), cells
	}
	at.as = as
	o.regions[string(loc.name)] = at
	return at
}

// known returns an opening of each region that its row of hbase:meta has named
// before known returned, now or long ago.
func (st *Store) known(ctx context.Context, table string, locs []*location) ([]opening, error) {
	if found, ok := st.openings.find(locs); ok {
		return found, nil
	}
	return st.readOpenings(ctx, table, locs)
}

// current returns the opening of each region that its row of hbase:meta names
// while current runs. Mostly nothing has changed in hbase:meta since the rows were
// read; to see that takes one call, which all who ask at that time share.
func (st *Store) current(ctx context.Context, table string, locs []*location) ([]opening, error) {
	found, ok := st.openings.find(locs)
	if !ok {
		return st.readOpenings(ctx, table, locs)
	}
	as, err := st.catalog(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range found {
		if o.as != as {
			return st.readOpenings(ctx, table, locs)
		}
	}
	return found, nil
}

// Qualifiers of hbase:meta that say who holds a region open, and since when.
const (
	qualifierRegion    = "regioninfo"
	qualifierServer    = "server"
	qualifierStartCode = "serverstartcode"
	qualifierNumber    = "seqnumDuringOpen"
	qualifierState     = "state"
)

// versions is more than hbase:meta keeps of a cell (three).
const versions = 10

// errMoved is a region that is not where it is remembered to be.
var errMoved = fmt.Errorf("%w: not as it was", errMeta)

// readOpenings reads the rows of regions that lie one behind the other. It is an
// error if one is not open as it is remembered to be.
func (st *Store) readOpenings(ctx context.Context, table string, locs []*location) ([]opening, error) {
	column := &pb.Column{Family: []byte("info")}
	for _, q := range []string{qualifierRegion, qualifierServer, qualifierStartCode, qualifierNumber, qualifierState} {
		column.Qualifier = append(column.Qualifier, []byte(q))
	}
	call, as, err := st.askCatalog(ctx, func(meta *location) *pb.ScanRequest {
		return &pb.ScanRequest{
			Region: regionSpecifier(meta.name),
			Scan: &pb.Scan{
				Column:      []*pb.Column{column},
				StartRow:    locs[0].name,
				StopRow:     append(bytes.Clone(locs[len(locs)-1].name), 0),
				MaxVersions: proto.Uint32(versions),
			},
			NumberOfRows: proto.Uint32(math.MaxInt32),
			NextCallSeq:  proto.Uint64(0),
			CloseScanner: proto.Bool(true),
		}
	})
	if err != nil {
		return nil, err
	}
	rows, err := decodeRows(call)
	if err != nil {
		return nil, err
	}
	return st.noteOpenings(table, locs, rows, as)
}

// noteOpenings finds the rows of regions among rows of hbase:meta.
func (st *Store) noteOpenings(table string, locs []*location, rows []store.Row, as catalogState) ([]opening, error) {
	byName := make(map[string]store.Row, len(rows))
	for _, row := range rows {
		byName[string(row.Key)] = row
	}
	found := make([]opening, len(locs))
	for i, loc := range locs {
		cells, err := rowOfOpening(table, loc, byName[string(loc.name)])
		if errors.Is(err, errMoved) {
			st.regions.forget(loc)
		}
		if err != nil {
			return nil, err
		}
		found[i] = st.openings.note(loc, cells, as)
	}
	return found, nil
}

// rowOfOpening returns what a row of hbase:meta says of a region that is open, as
// text that no other opening has: all versions of its cells with their
// timestamps. Two clones of one snapshot may be opened by one server under one
// number, but not in one millisecond; and if the clock of the master was set back
// between, so that a later opening is hidden behind an earlier one, it is there
// as a version.
//
// A region that is about to be closed, or not yet known to be open, has another
// state than OPEN: the master writes that down before it has the server do
// anything. An opening is written in one put, so its cells have one timestamp; a
// state that somebody has set by hand has another one and proves nothing.
func rowOfOpening(table string, loc *location, row store.Row) (string, error) {
	latest := map[string]store.Cell{}
	var b []byte
	for _, c := range row.Cells { // the latest version of a cell comes first
		q := string(c.Qualifier)
		if _, ok := latest[q]; !ok {
			latest[q] = c
		}
		b = append(binary.AppendUvarint(b, uint64(len(q))), q...)
		b = binary.BigEndian.AppendUint64(b, uint64(c.Timestamp))
		b = append(binary.AppendUvarint(b, uint64(len(c.Value))), c.Value...)
	}
	return string(b), isOpen(table, loc, latest)
}

// isOpen returns why the latest cells of a region's row do not say that it is open
// where it is remembered to be.
func isOpen(table string, loc *location, latest map[string]store.Cell) error {
	wrong := func(sort error, what string, got, want any) error {
		return fmt.Errorf("%w: region %q: %s: got %v, want %v", sort, loc.name, what, got, want)
	}
	if len(latest) == 0 {
		return wrong(errMoved, "row", "none", "one")
	}
	info := regionInfo{}
	if err := info.decode(latest[qualifierRegion].Value); err != nil {
		return fmt.Errorf("%w: region %q: %w", errMeta, loc.name, err)
	}
	server, state := latest[qualifierServer], latest[qualifierState]
	switch {
	case info.table != table || !bytes.Equal(info.start, loc.start) || !bytes.Equal(info.stop, loc.stop):
		return wrong(errMoved, "keys", fmt.Sprintf("%q [%x, %x)", info.table, info.start, info.stop), fmt.Sprintf("%q [%x, %x)", table, loc.start, loc.stop))
	case info.offline || info.replica:
		return wrong(errMoved, "regioninfo", "offline or a replica", "a region that is served")
	case string(state.Value) != "OPEN":
		return wrong(errMeta, "state", string(state.Value), "OPEN")
	case string(server.Value) != loc.addr:
		return wrong(errMoved, "server", string(server.Value), loc.addr)
	}
	for _, q := range []string{qualifierServer, qualifierStartCode, qualifierNumber} {
		if c, ok := latest[q]; !ok || c.Timestamp != state.Timestamp {
			return wrong(errMeta, "time of "+q, c.Timestamp, state.Timestamp)
		}
	}
	return nil
}

// looks lets those who want to know the state of hbase:meta at one time share a
// call, if there are many of them. It must begin after they have asked: so who
// comes while looksAtOnce are under way shares the next one.
type looks struct {
	mu      sync.Mutex
	running int
	next    *look     // not begun
	silent  time.Time // when the server of hbase:meta last was
}

// looksAtOnce bounds what a store asks of hbase:meta, which serves the whole
// cluster.
const looksAtOnce = 4

// rest is how long a server of hbase:meta that was silent is not asked: reading
// the rows of the table is faster than waiting again, unless the machine is so
// busy that everything takes as long; so it is short.
const rest = 2 * time.Second

// resting tells that the server of hbase:meta was silent just now.
func (l *looks) resting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.silent) < rest
}

// keptWaiting notes that the server of hbase:meta was silent.
func (l *looks) keptWaiting() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = time.Now()
}

// askCatalog opens a scan of hbase:meta and returns the call with its reply, and
// the state that the scan sees. It makes one attempt, and not for long. Whoever
// gives up after half of that has waited for a silent server.
func (st *Store) askCatalog(ctx context.Context, request func(meta *location) *pb.ScanRequest) (*rpc, catalogState, error) {
	if st.looks.resting() {
		return nil, catalogState{}, errSilent
	}
	inner, cancel := context.WithTimeout(ctx, st.cfg.MarkPatience)
	defer cancel()
	began := time.Now()
	call, as, err := st.scanCatalog(inner, request)
	if inner.Err() != nil && time.Since(began) >= st.cfg.MarkPatience/2 {
		st.looks.keptWaiting()
	}
	return call, as, err
}

func (st *Store) scanCatalog(ctx context.Context, request func(meta *location) *pb.ScanRequest) (*rpc, catalogState, error) {
	meta, err := st.locateMeta(ctx)
	if err != nil {
		return nil, catalogState{}, err
	}
	call := newRPC(ctx, "Scan", request(meta), &pb.ScanResponse{})
	c, err := st.exchange(ctx, meta, call)
	if err != nil {
		return nil, catalogState{}, err
	}
	n := readPoint(call.response.(*pb.ScanResponse))
	if n == 0 {
		return nil, catalogState{}, errNoReadPoint
	}
	return call, catalogState{c.id, n}, nil
}

// look is one call that is shared.
type look struct {
	done chan struct{} // closed when the rest is there
	as   catalogState
	err  error
}

// catalog returns the state that hbase:meta has while catalog runs.
func (st *Store) catalog(ctx context.Context) (catalogState, error) {
	l := st.looks.join()
	if l == nil {
		as, err := st.look(ctx)
		if next := st.looks.done(); next != nil {
			st.wg.Go(func() { st.lookOn(next) })
		}
		return as, err
	}
	select {
	case <-l.done:
		return l.as, l.err
	case <-ctx.Done():
		return catalogState{}, ctx.Err()
	}
}

// join returns a look that has not begun, or nil if few look: then the caller is
// to.
func (l *looks) join() *look {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running < looksAtOnce {
		l.running++
		return nil
	}
	if l.next == nil {
		l.next = &look{done: make(chan struct{})}
	}
	return l.next
}

// done ends a look and returns the next one to make, nil if none is wanted.
func (l *looks) done() *look {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.next
	if l.next = nil; next == nil {
		l.running--
	}
	return next
}

// lookOn makes looks until none is wanted, for as long as the store lives: some
// of those who share one may have gone.
func (st *Store) lookOn(l *look) {
	for ; l != nil; l = st.looks.done() {
		l.as, l.err = st.look(st.life)
		close(l.done)
	}
}

// look asks for the read point of hbase:meta.
func (st *Store) look(ctx context.Context) (catalogState, error) {
	_, as, err := st.askCatalog(ctx, func(meta *location) *pb.ScanRequest { return readPointRequest(meta, "info", nil) })
	return as, err
}
