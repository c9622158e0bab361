package regions

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

// MetaTable lists the regions of all tables. Its own region is found in another way.
const MetaTable = "hbase:meta"

var metaRegionName = []byte("hbase:meta,,1")

// Location is a region and the server that holds it, as far as is known.
type Location struct {
	Table       string
	Name        []byte // table,start,id.md5.
	Start, Stop []byte // half-open; an empty stop is the table's end
	Addr        string // host:port
}

// Contains reports whether a row of this key is in the region.
func (l *Location) Contains(key []byte) bool {
	return bytes.Compare(key, l.Start) >= 0 && (len(l.Stop) == 0 || bytes.Compare(key, l.Stop) < 0)
}

// regionCache caches the locations of the regions of each table.
type regionCache struct {
	mu      sync.RWMutex
	tables  map[string][]*Location   // by table; ordered by start key, without overlaps
	lookUps map[string]chan struct{} // by table; see lockLookUp
}

func newRegionCache() *regionCache {
	return &regionCache{tables: map[string][]*Location{}, lookUps: map[string]chan struct{}{}}
}

// find returns the cached region of key, or nil.
func (rc *regionCache) find(table string, key []byte) *Location {
	rc.mu.RLock()
	defer rc.mu.RUnlock()

	// The region of key is the last one that starts at or before it.
	locs := rc.tables[table]
	i, ok := slices.BinarySearchFunc(locs, key, func(l *Location, k []byte) int { return bytes.Compare(l.Start, k) })
	if !ok {
		i--
	}
	if i < 0 || !locs[i].Contains(key) {
		return nil
	}
	return locs[i]
}

// add caches loc in place of all regions that overlap it.
func (rc *regionCache) add(loc *Location) {
	rc.mu.Lock()
	defer rc.mu.Unlock()

	// A new slice, because list still reads the one that it gave to replace.
	kept := make([]*Location, 0, len(rc.tables[loc.Table])+1)
	for _, l := range rc.tables[loc.Table] {
		before := len(l.Stop) != 0 && bytes.Compare(l.Stop, loc.Start) <= 0
		after := len(loc.Stop) != 0 && bytes.Compare(loc.Stop, l.Start) <= 0
		if before || after {
			kept = append(kept, l)
		}
	}
	i, _ := slices.BinarySearchFunc(kept, loc, func(a, b *Location) int { return bytes.Compare(a.Start, b.Start) })
	rc.tables[loc.Table] = slices.Insert(kept, i, loc)
}

// replace caches all regions of a table. The caller must not change locs afterwards.
func (rc *regionCache) replace(table string, locs []*Location) {
	rc.mu.Lock()
	defer rc.mu.Unlock()

	rc.tables[table] = locs
}

// forget drops loc, unless the cache has another location in its place by now.
func (rc *regionCache) forget(loc *Location) { rc.remove(func(l *Location) bool { return l == loc }) }

// forgetServer drops every region of a server.
func (rc *regionCache) forgetServer(addr string) {
	rc.remove(func(l *Location) bool { return l.Addr == addr })
}

// remove drops the regions for which wrong is true.
func (rc *regionCache) remove(wrong func(*Location) bool) {
	rc.mu.Lock()
	defer rc.mu.Unlock()

	for table, locs := range rc.tables {
		if slices.ContainsFunc(locs, wrong) {
			// A new slice, because list still reads the one that it gave to replace.
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

// Locate finds the region of key, in the cache or in hbase:meta. It makes one
// attempt. It returns store.ErrNoTable if hbase:meta does not list the table.
func (r *Router) Locate(ctx context.Context, table string, key []byte) (*Location, error) {
	if table == MetaTable {
		return r.LocateMeta(ctx)
	}
	if loc := r.regions.find(table, key); loc != nil {
		return loc, nil
	}

	release, err := r.regions.lockLookUp(ctx, table)
	if err != nil {
		return nil, err
	}
	defer release()

	// The previous holder of the lock may have found the region.
	if loc := r.regions.find(table, key); loc != nil {
		return loc, nil
	}
	loc, err := r.lookUp(ctx, table, key)
	if err == nil {
		r.regions.add(loc)
	}
	return loc, err
}

// LocateMeta finds the only region of hbase:meta.
func (r *Router) LocateMeta(ctx context.Context) (*Location, error) {
	addr, err := r.locator.address(ctx, metaServer)
	if err != nil {
		return nil, err
	}
	return &Location{Table: MetaTable, Name: metaRegionName, Addr: addr}, nil
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
func (r *Router) lookUp(ctx context.Context, table string, key []byte) (*Location, error) {
	meta, err := r.LocateMeta(ctx)
	if err != nil {
		return nil, err
	}

	search := append(append(append([]byte(table), ','), key...), ',', ':')
	for skipped := false; ; skipped = true {
		row, err := r.lastRowOfMeta(ctx, meta, search)
		if err != nil {
			return nil, err
		}
		info := &Info{}
		if row != nil {
			if info, err = parseRegion(*row); err != nil {
				return nil, err
			}
		}

		switch {
		case info.Table != table && skipped:
			// There is a hole in hbase:meta: a table whose region was split exists.
			return nil, fmt.Errorf("%w: no region of table %q holds key %x", ErrMeta, table, key)
		case info.Table != table || !info.split:
			return locationOf(table, key, info)
		}
		// A name without its last byte, a full stop, sorts just before the name.
		search = info.Name[:len(info.Name)-1]
	}
}

// lastRowOfMeta returns the last row of hbase:meta that is not after search, or nil.
func (r *Router) lastRowOfMeta(ctx context.Context, meta *Location, search []byte) (*store.Row, error) {
	scan := &pb.Scan{
		Column:   []*pb.Column{{Family: []byte("info")}},
		StartRow: search,
		Reversed: proto.Bool(true),
	}
	call := calls.New(ctx, "Scan", &pb.ScanRequest{
		Region:       calls.RegionSpecifier(meta.Name),
		Scan:         scan,
		NumberOfRows: proto.Uint32(1),
		CloseScanner: proto.Bool(true),
	}, &pb.ScanResponse{})
	if err := r.call(ctx, meta, call); err != nil {
		return nil, err
	}

	rows, err := cellblock.Rows(call.Cells, call.Response.(*pb.ScanResponse).GetCellsPerResult())
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// locationOf returns the location that info describes, if that is the region of key, else ErrMeta:
// it is not at the moment.
func locationOf(table string, key []byte, info *Info) (*Location, error) {
	switch {
	case info.Table != table:
		// The table has no row at or before the key, so it has none at all: the
		// first region of a table starts at the empty key.
		return nil, fmt.Errorf("%w: %q", store.ErrNoTable, table)
	case info.Offline:
		return nil, fmt.Errorf("%w: region %q is offline", ErrMeta, info.Name)
	case info.Addr == "":
		return nil, fmt.Errorf("%w: region %q has no server", ErrMeta, info.Name)
	case !info.Contains(key):
		return nil, fmt.Errorf("%w: no region of table %q holds key %x: the next one is %q", ErrMeta, table, key,
			info.Name)
	}
	return &info.Location, nil
}
