package unchanged

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
	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/cellblock"
	"downpour/pushdown/store/hbase/regions"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// opening is one opening of a region by a region server, as the region's row of
// hbase:meta describes it. Version explains why it is needed.
type opening struct {
	number  uint64       // from epochs; two openings have the same only if their cells are equal
	cells   string       // of the row, see encodeOpening
	catalog catalogState // the state of hbase:meta in which the row had these cells
}

// catalogState is the progress of hbase:meta's changes. While it stays equal, no row of
// hbase:meta has changed. Unlike the states of other regions it needs no opening,
// because hbase:meta is never replaced: it is enough that the connection, which does
// not outlive the server's process, and the read point are equal; see Version.
type catalogState struct {
	conn      uint64
	readPoint uint64
}

// openingCache keeps the last known opening of each region.
type openingCache struct {
	mu      sync.Mutex
	regions map[string]opening // by region name
}

// find returns the openings of regions, false if one of them is unknown.
func (o *openingCache) find(locs []*regions.Location) ([]opening, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()

	found := make([]opening, len(locs))
	for i, loc := range locs {
		var ok bool
		if found[i], ok = o.regions[string(loc.Name)]; !ok {
			return nil, false
		}
	}
	return found, true
}

// update stores the row of a region and returns it as an opening. The opening keeps its
// number if the row has the same cells as before.
func (o *openingCache) update(loc *regions.Location, cells string, catalog catalogState) opening {
	o.mu.Lock()
	defer o.mu.Unlock()

	// A dropped opening is read again and gets a new number, which costs only time.
	if o.regions == nil || len(o.regions) > maxHistory {
		o.regions = map[string]opening{}
	}

	at := o.regions[string(loc.Name)]
	if at.cells != cells {
		at.number, at.cells = epochs.Add(1), cells
	}
	// The same cells, read in a newer state, hold as long as that one stays.
	at.catalog = catalog
	o.regions[string(loc.Name)] = at
	return at
}

// earlierOpenings returns, for each region, an opening that its row of hbase:meta
// has named at some time before earlierOpenings returns, perhaps long ago.
func (p *Prover) earlierOpenings(ctx context.Context, table string, locs []*regions.Location) ([]opening, error) {
	if found, ok := p.openings.find(locs); ok {
		return found, nil
	}
	return p.readOpenings(ctx, table, locs)
}

// currentOpenings returns, for each region, the opening that its row of hbase:meta
// names while currentOpenings runs. Usually nothing in hbase:meta has changed since the
// rows were read. That check takes one call, which is shared with concurrent callers.
func (p *Prover) currentOpenings(ctx context.Context, table string, locs []*regions.Location) ([]opening, error) {
	found, ok := p.openings.find(locs)
	if !ok {
		return p.readOpenings(ctx, table, locs)
	}

	catalog, err := p.currentCatalog(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range found {
		if o.catalog != catalog {
			return p.readOpenings(ctx, table, locs)
		}
	}
	return found, nil
}

// Qualifiers of hbase:meta for the server that has a region open, and since when.
const (
	qualifierRegion    = "regioninfo"
	qualifierServer    = "server"
	qualifierStartCode = "serverstartcode"
	qualifierNumber    = "seqnumDuringOpen"
	qualifierState     = "state"
)

// metaVersions is more versions than hbase:meta keeps of a cell (three).
const metaVersions = 10

// readOpenings reads the rows of consecutive regions from hbase:meta. It is an
// error if one of them is not open where the region cache says.
func (p *Prover) readOpenings(ctx context.Context, table string, locs []*regions.Location) ([]opening, error) {
	column := &pb.Column{Family: []byte("info")}
	for _, q := range []string{qualifierRegion, qualifierServer, qualifierStartCode, qualifierNumber, qualifierState} {
		column.Qualifier = append(column.Qualifier, []byte(q))
	}

	// One call reads all rows, so that they are of the one state of hbase:meta that it
	// returns.
	call, catalog, err := p.callCatalog(ctx, func(meta *regions.Location) *pb.ScanRequest {
		return &pb.ScanRequest{
			Region: calls.RegionSpecifier(meta.Name),
			Scan: &pb.Scan{
				Column:      []*pb.Column{column},
				StartRow:    locs[0].Name,
				StopRow:     append(bytes.Clone(locs[len(locs)-1].Name), 0),
				MaxVersions: proto.Uint32(metaVersions), // all of them: see encodeOpening
			},
			NumberOfRows: proto.Uint32(math.MaxInt32),
			NextCallSeq:  proto.Uint64(0),
			CloseScanner: proto.Bool(true),
		}
	})
	if err != nil {
		return nil, err
	}

	rows, err := cellblock.Rows(call.Cells, call.Response.(*pb.ScanResponse).GetCellsPerResult())
	if err != nil {
		return nil, err
	}
	return p.updateOpenings(table, locs, rows, catalog)
}

// updateOpenings stores and returns the openings that rows of hbase:meta name. It
// forgets the cached location of a region that is elsewhere.
func (p *Prover) updateOpenings(table string, locs []*regions.Location, rows []store.Row,
	catalog catalogState) ([]opening, error) {
	byName := make(map[string]store.Row, len(rows))
	for _, row := range rows {
		byName[string(row.Key)] = row
	}

	found := make([]opening, len(locs))
	for i, loc := range locs {
		// It also checks that the region is open at loc.
		cells, err := encodeOpening(table, loc, byName[string(loc.Name)])
		if errors.Is(err, regions.ErrMoved) {
			p.router.Forget(loc)
		}
		if err != nil {
			return nil, err
		}
		found[i] = p.openings.update(loc, cells, catalog)
	}
	return found, nil
}

// encodeOpening returns the cells of an open region's row of hbase:meta as a string
// that no other opening has: all versions of the cells with their timestamps. It
// returns an error if the region is not open.
//
// Why timestamps and versions: two clones of one snapshot may be opened by one
// server under one number, but not in one millisecond. And if the master's clock
// was set back in between, so that a later opening is hidden by an earlier one,
// it still shows as a version.
//
// Why only open regions: a region that is about to be closed, or not yet known to be
// open, has another state than OPEN, which the master writes before it calls the
// server. An opening is written in one put, so its cells have one timestamp; a state
// that somebody has set by hand has another one and proves nothing.
func encodeOpening(table string, loc *regions.Location, row store.Row) (string, error) {
	newest := map[string]store.Cell{}
	var b []byte
	for _, c := range row.Cells {
		// The newest version of a cell comes first.
		q := string(c.Qualifier)
		if _, ok := newest[q]; !ok {
			newest[q] = c
		}
		b = append(binary.AppendUvarint(b, uint64(len(q))), q...)
		b = binary.BigEndian.AppendUint64(b, uint64(c.Timestamp))
		b = append(binary.AppendUvarint(b, uint64(len(c.Value))), c.Value...)
	}

	return string(b), checkOpen(table, loc, newest)
}

// checkOpen returns an error unless the region is open at loc by the newest cells of its row:
// regions.ErrMoved if it is elsewhere, regions.ErrMeta if it is not open.
func checkOpen(table string, loc *regions.Location, newest map[string]store.Cell) error {
	wrong := func(kind error, what string, got, want any) error {
		return fmt.Errorf("%w: region %q: %s: got %v, want %v", kind, loc.Name, what, got, want)
	}
	// A region that was split, merged or dropped loses its row in the end.
	if len(newest) == 0 {
		return wrong(regions.ErrMoved, "row", "none", "one")
	}
	info := regions.Info{}
	if err := info.Decode(newest[qualifierRegion].Value); err != nil {
		return fmt.Errorf("%w: region %q: %w", regions.ErrMeta, loc.Name, err)
	}

	server, state := newest[qualifierServer], newest[qualifierState]
	switch {
	case info.Table != table || !bytes.Equal(info.Start, loc.Start) || !bytes.Equal(info.Stop, loc.Stop):
		return wrong(regions.ErrMoved, "keys", fmt.Sprintf("%q [%x, %x)", info.Table, info.Start, info.Stop),
			fmt.Sprintf("%q [%x, %x)", table, loc.Start, loc.Stop))
	case info.Offline || info.Replica:
		return wrong(regions.ErrMoved, "regioninfo", "offline or a replica", "a region that is served")
	case len(state.Value) == 0:
		return fmt.Errorf("%w: region %q", ErrNoState, loc.Name)
	case string(state.Value) != "OPEN":
		return wrong(regions.ErrMeta, "state", string(state.Value), "OPEN")
	case string(server.Value) != loc.Addr:
		return wrong(regions.ErrMoved, "server", string(server.Value), loc.Addr)
	}

	// All cells of an opening stem from one put.
	for _, q := range []string{qualifierServer, qualifierStartCode, qualifierNumber} {
		if c := newest[q]; c.Timestamp != state.Timestamp {
			return wrong(regions.ErrMeta, "time of "+q, c.Timestamp, state.Timestamp)
		}
	}
	return nil
}

// maxCatalogReads bounds the concurrent reads of hbase:meta's read point, because its
// server serves the whole cluster.
const maxCatalogReads = 4

// metaSilencePause is how long a silent server of hbase:meta is not called again. In
// that time the rows of the table itself are read, which is faster than another wait,
// unless the machine is so busy that everything takes as long; so the pause is short.
const metaSilencePause = 2 * time.Second

// catalogReads lets goroutines that need the state of hbase:meta share calls, if there
// are many of them. A call can be shared only by goroutines that come before it begins:
// otherwise its answer might be older than the request. So a caller that comes while
// maxCatalogReads are running waits for the next one.
type catalogReads struct {
	mu      sync.Mutex
	running int
	next    *catalogRead // not begun; nil if there are no waiters
	silent  time.Time    // when the server of hbase:meta last did not answer in time
}

// catalogRead is a shared call. Its result may be read once done is closed.
type catalogRead struct {
	done    chan struct{}
	catalog catalogState
	err     error
}

// recentlySilent reports whether the server of hbase:meta was silent just now.
func (p *catalogReads) recentlySilent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return time.Since(p.silent) < metaSilencePause
}

// noteSilence notes that the server of hbase:meta has not answered in time.
func (p *catalogReads) noteSilence() {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.silent = time.Now()
}

// begin returns nil if the caller may read at once; the caller then calls end. Else
// it returns a shared read that has not begun, to wait for.
func (p *catalogReads) begin() *catalogRead {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.running < maxCatalogReads {
		p.running++
		return nil
	}
	if p.next == nil {
		p.next = &catalogRead{done: make(chan struct{})}
	}
	return p.next
}

// end ends a read. If goroutines wait for the next one, end returns it, and the
// caller makes it in place of its own.
func (p *catalogReads) end() *catalogRead {
	p.mu.Lock()
	defer p.mu.Unlock()

	next := p.next
	if p.next = nil; next == nil {
		p.running--
	}
	return next
}

// currentCatalog returns a state that hbase:meta has while currentCatalog runs. With many callers,
// it waits for a read that they share, see catalogReads.
func (p *Prover) currentCatalog(ctx context.Context) (catalogState, error) {
	shared := p.catalogReads.begin()
	if shared == nil {
		catalog, err := p.readCatalogState(ctx)
		if next := p.catalogReads.end(); next != nil {
			// In the background, because this caller has its answer.
			p.life.Run(func() { p.runCatalogReads(next) })
		}
		return catalog, err
	}

	select {
	case <-shared.done:
		return shared.catalog, shared.err
	case <-ctx.Done():
		return catalogState{}, ctx.Err()
	}
}

// runCatalogReads makes shared reads until there are no waiters. They end with the
// store and not with a caller's context, as one of the callers may leave.
func (p *Prover) runCatalogReads(r *catalogRead) {
	for ; r != nil; r = p.catalogReads.end() {
		r.catalog, r.err = p.readCatalogState(p.life.Context())
		close(r.done)
	}
}

// readCatalogState fetches the read point of hbase:meta.
func (p *Prover) readCatalogState(ctx context.Context) (catalogState, error) {
	_, catalog, err := p.callCatalog(ctx,
		func(meta *regions.Location) *pb.ScanRequest { return readPointRequest(meta, "info") })
	return catalog, err
}

// callCatalog opens a scan of hbase:meta. It returns the call with its reply, and
// the state that the scan sees. It makes one attempt, within
// Config.Timeout.
func (p *Prover) callCatalog(ctx context.Context,
	request func(meta *regions.Location) *pb.ScanRequest) (*calls.Call, catalogState, error) {
	if p.catalogReads.recentlySilent() {
		return nil, catalogState{}, errMetaSilent
	}

	inner, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	began := time.Now()
	call, catalog, err := p.scanCatalog(inner, request)

	// A caller that leaves soon is no sign of a slow server; one that has waited for half of the
	// timeout is.
	if inner.Err() != nil && time.Since(began) >= p.cfg.Timeout/2 {
		p.catalogReads.noteSilence()
	}
	return call, catalog, err
}

// scanCatalog is callCatalog without its own timeout.
func (p *Prover) scanCatalog(ctx context.Context,
	request func(meta *regions.Location) *pb.ScanRequest) (*calls.Call, catalogState, error) {
	meta, err := p.router.LocateMeta(ctx)
	if err != nil {
		return nil, catalogState{}, err
	}
	call := calls.New(ctx, "Scan", request(meta), &pb.ScanResponse{})
	c, err := p.router.CallConn(ctx, meta, call)
	if err != nil {
		return nil, catalogState{}, err
	}

	n := decodeReadPoint(call.Response.(*pb.ScanResponse))
	if n == 0 {
		return nil, catalogState{}, ErrNoReadPoint
	}
	return call, catalogState{c.ID, n}, nil
}
