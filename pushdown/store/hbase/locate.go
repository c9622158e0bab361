package hbase

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/cellblock"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

const metaTable = "hbase:meta"

var metaRegionName = []byte("hbase:meta,,1")

// location is a region and the server that holds it, as far as is known.
type location struct {
	table       string
	name        []byte // table,start,id.md5.
	start, stop []byte // half-open; an empty stop is the table's end
	addr        string // host:port
}

func (l *location) contains(key []byte) bool {
	return bytes.Compare(key, l.start) >= 0 && (len(l.stop) == 0 || bytes.Compare(key, l.stop) < 0)
}

// regionCache caches the locations of the regions of each table.
type regionCache struct {
	mu      sync.RWMutex
	tables  map[string][]*location   // by table; ordered by start key, without overlaps
	lookUps map[string]chan struct{} // by table; see lockLookUp
}

func newRegionCache() *regionCache {
	return &regionCache{tables: map[string][]*location{}, lookUps: map[string]chan struct{}{}}
}

// find returns the cached region of key, or nil.
func (rc *regionCache) find(table string, key []byte) *location {
	rc.mu.RLock()
	defer rc.mu.RUnlock()

	// The region of key is the last one that starts at or before it.
	locs := rc.tables[table]
	i, ok := slices.BinarySearchFunc(locs, key, func(l *location, k []byte) int { return bytes.Compare(l.start, k) })
	if !ok {
		i--
	}
	if i < 0 || !locs[i].contains(key) {
		return nil
	}
	return locs[i]
}

// add caches loc in place of all regions that overlap it.
func (rc *regionCache) add(loc *location) {
	rc.mu.Lock()
	defer rc.mu.Unlock()

	// A new slice, because Regions still reads the one that it gave to replace.
	kept := make([]*location, 0, len(rc.tables[loc.table])+1)
	for _, l := range rc.tables[loc.table] {
		before := len(l.stop) != 0 && bytes.Compare(l.stop, loc.start) <= 0
		after := len(loc.stop) != 0 && bytes.Compare(loc.stop, l.start) <= 0
		if before || after {
			kept = append(kept, l)
		}
	}
	i, _ := slices.BinarySearchFunc(kept, loc, func(a, b *location) int { return bytes.Compare(a.start, b.start) })
	rc.tables[loc.table] = slices.Insert(kept, i, loc)
}

// replace caches all regions of a table at once. The caller must not change locs
// afterwards.
func (rc *regionCache) replace(table string, locs []*location) {
	rc.mu.Lock()
	defer rc.mu.Unlock()

	rc.tables[table] = locs
}

// forget drops loc, unless the cache has another location in its place by now.
func (rc *regionCache) forget(loc *location) { rc.remove(func(l *location) bool { return l == loc }) }

// forgetServer drops every region of a server.
func (rc *regionCache) forgetServer(addr string) {
	rc.remove(func(l *location) bool { return l.addr == addr })
}

// remove drops the regions for which wrong is true.
func (rc *regionCache) remove(wrong func(*location) bool) {
	rc.mu.Lock()
	defer rc.mu.Unlock()

	for table, locs := range rc.tables {
		if slices.ContainsFunc(locs, wrong) {
			// A new slice, because Regions still reads the one that it gave to replace.
			rc.tables[table] = slices.DeleteFunc(slices.Clone(locs), wrong)
		}
	}
}

// lockLookUp waits for the right to look up a region of a table in hbase:meta,
// which one goroutine at a time has; release gives it back.
func (rc *regionCache) lockLookUp(ctx context.Context, table string) (release func(), err error) {
	rc.mu.Lock()
	lock := rc.lookUps[table]
	if lock == nil {
		lock = make(chan struct{}, 1)
		rc.lookUps[table] = lock
	}
	rc.mu.Unlock()

	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// locate finds the region of key, in the cache or in hbase:meta. It makes one
// attempt. It returns store.ErrNoTable if hbase:meta does not list the table.
func (st *Store) locate(ctx context.Context, table string, key []byte) (*location, error) {
	if table == metaTable {
		return st.locateMeta(ctx)
	}
	if loc := st.regions.find(table, key); loc != nil {
		return loc, nil
	}

	release, err := st.regions.lockLookUp(ctx, table)
	if err != nil {
		return nil, err
	}
	defer release()

	// Whoever held the lock before may have found the region.
	if loc := st.regions.find(table, key); loc != nil {
		return loc, nil
	}
	loc, err := st.lookUp(ctx, table, key)
	if err == nil {
		st.regions.add(loc)
	}
	return loc, err
}

// locateMeta finds the only region of hbase:meta.
func (st *Store) locateMeta(ctx context.Context) (*location, error) {
	addr, err := st.locator.address(ctx, metaServer)
	if err != nil {
		return nil, err
	}
	return &location{table: metaTable, name: metaRegionName, addr: addr}, nil
}

// lookUp reads the row of key's region from hbase:meta. Rows are ordered by table,
// start key and region id; the wanted row is the last one not after
// "table,key,:", because a colon sorts after every region id. So one row is read
// in reverse from there.
//
// The parent of a split stays in hbase:meta for some minutes. If its first daughter
// has been merged with the region before, no other row starts where the parent does,
// and the wanted row is before the parent's. Java's AsyncNonMetaRegionLocator skips
// parents, too.
func (st *Store) lookUp(ctx context.Context, table string, key []byte) (*location, error) {
	meta, err := st.locateMeta(ctx)
	if err != nil {
		return nil, err
	}

	search := append(append(append([]byte(table), ','), key...), ',', ':')
	for skipped := false; ; skipped = true {
		row, err := st.lastRowOfMeta(ctx, meta, search)
		if err != nil {
			return nil, err
		}
		info := &regionInfo{}
		if row != nil {
			if info, err = parseRegion(*row); err != nil {
				return nil, err
			}
		}

		switch {
		case info.table != table && skipped:
			// There is a hole in hbase:meta: a table whose region was split exists.
			return nil, fmt.Errorf("%w: no region of table %q holds key %x", errMeta, table, key)
		case info.table != table || !info.split:
			return locationOf(table, key, info)
		}
		// A name without its last byte, a full stop, sorts just before the name.
		search = info.name[:len(info.name)-1]
	}
}

// lastRowOfMeta returns the last row of hbase:meta that is not after search, or nil.
func (st *Store) lastRowOfMeta(ctx context.Context, meta *location, search []byte) (*store.Row, error) {
	scan := &pb.Scan{
		Column:   []*pb.Column{{Family: []byte("info")}},
		StartRow: search,
		Reversed: proto.Bool(true),
	}
	call := calls.New(ctx, "Scan", &pb.ScanRequest{
		Region:       calls.RegionSpecifier(meta.name),
		Scan:         scan,
		NumberOfRows: proto.Uint32(1),
		CloseScanner: proto.Bool(true),
	}, &pb.ScanResponse{})
	if err := st.call(ctx, meta, call); err != nil {
		return nil, err
	}

	rows, err := cellblock.Rows(call.Cells, call.Response.(*pb.ScanResponse).GetCellsPerResult())
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// locationOf returns the location that info describes, if that is the region of key.
// errMeta says that it is not at the moment.
func locationOf(table string, key []byte, info *regionInfo) (*location, error) {
	switch {
	case info.table != table:
		// The table has no row at or before the key, so it has none at all: the
		// first region of a table starts at the empty key.
		return nil, fmt.Errorf("%w: %q", store.ErrNoTable, table)
	case info.offline:
		return nil, fmt.Errorf("%w: region %q is offline", errMeta, info.name)
	case info.addr == "":
		return nil, fmt.Errorf("%w: region %q has no server", errMeta, info.name)
	case !info.contains(key):
		return nil, fmt.Errorf("%w: no region of table %q holds key %x: the next one is %q", errMeta, table, key, info.name)
	}
	return &info.location, nil
}
