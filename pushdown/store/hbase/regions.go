package hbase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"downpour/pushdown/store"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// regionInfo is a region as a row of hbase:meta describes it.
type regionInfo struct {
	location
	offline bool // it is the parent of a split, or disabled
	split   bool // it is the parent of a split
	replica bool // it is a read replica
}

// parseRegion parses the cells info:regioninfo ("PBUF" and a RegionInfo
// message) and info:server ("host:port") of a row of hbase:meta. The slices of
// the result are copies.
func parseRegion(row store.Row) (*regionInfo, error) {
	info := &regionInfo{}
	found := false
	for _, c := range row.Cells {
		switch string(c.Qualifier) {
		case "regioninfo":
			if err := info.decode(c.Value); err != nil {
				return nil, fmt.Errorf("%w: row %q: %w", errMeta, row.Key, err)
			}
			found = true
		case "server":
			info.addr = string(c.Value)
		}
	}
	if !found {
		return nil, fmt.Errorf("%w: row %q has no regioninfo", errMeta, row.Key)
	}

	info.name = bytes.Clone(row.Key)
	return info, nil
}

// decode sets everything but name and addr from the value of info:regioninfo.
func (info *regionInfo) decode(value []byte) error {
	body, ok := bytes.CutPrefix(value, []byte("PBUF"))
	if !ok {
		return fmt.Errorf("cannot parse regioninfo: got % x, want it to begin with 50 42 55 46 (PBUF)", value[:min(len(value), 4)])
	}
	var m pb.RegionInfo
	if err := proto.Unmarshal(body, &m); err != nil {
		return fmt.Errorf("cannot parse regioninfo: %w", err)
	}

	info.table = string(m.GetTableName().GetQualifier())
	if ns := string(m.GetTableName().GetNamespace()); ns != "default" && ns != "" {
		info.table = ns + ":" + info.table
	}
	info.start, info.stop = m.GetStartKey(), m.GetEndKey()
	info.split = m.GetSplit()
	info.offline = m.GetOffline() || info.split
	info.replica = m.GetReplicaId() != 0
	return nil
}

// Regions lists the regions that overlap [start, stop). It reads them from
// hbase:meta, again and again while a split, a merge or a move leaves a hole there.
// Later scans and writes find them in the region cache.
func (st *Store) Regions(ctx context.Context, table string, start, stop []byte) ([]store.Region, error) {
	if err := st.life.Begin(); err != nil {
		return nil, err
	}
	defer st.life.Done()

	retry := st.newRetrier(ctx, table)
	for {
		locs, err := st.readRegions(ctx, table)
		if err == nil {
			st.regions.replace(table, locs)
			return overlapping(locs, start, stop), nil
		}

		// The scan of hbase:meta has retried already.
		if errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.Canceled) {
			return nil, err
		}
		if err := retry.afterFailure(err); err != nil {
			return nil, err
		}
	}
}

// readRegions reads all regions of a table from hbase:meta, once, and checks that
// they form a chain.
func (st *Store) readRegions(ctx context.Context, table string) ([]*location, error) {
	scan, err := st.Scan(ctx, store.Scan{
		Table:  metaTable,
		Start:  []byte(table + ",,"),
		Stop:   []byte(table + " ,,"), // hbase:meta sorts by the table first, and no table's name lies between; Java's client uses the same
		Family: "info",
	})
	if err != nil {
		return nil, err
	}
	defer scan.Close()

	var locs []*location
	listed := false // hbase:meta has a row of the table
	for {
		rows, err := scan.Next()
		// A table none of whose regions is served now does exist, so this is not ErrNoTable.
		if err == io.EOF && listed && len(locs) == 0 {
			return nil, fmt.Errorf("%w: no region of table %q is online", errMeta, table)
		}
		if err == io.EOF {
			return locs, checkChain(table, locs)
		}
		if err != nil {
			return nil, err
		}

		for _, row := range rows {
			info, err := parseRegion(row)
			if err != nil {
				return nil, err
			}
			listed = listed || info.table == table
			if info.table == table && !info.offline && !info.replica {
				locs = append(locs, &info.location)
			}
		}
	}
}

// checkChain sorts regions by start key. It returns an error unless the first one
// starts at the empty key, each other one where the one before ends, and the last
// one has no end.
func checkChain(table string, locs []*location) error {
	if len(locs) == 0 {
		return fmt.Errorf("%w: %q", store.ErrNoTable, table)
	}

	slices.SortFunc(locs, func(a, b *location) int { return bytes.Compare(a.start, b.start) })
	var end []byte // of the region before
	for i, l := range locs {
		if l.addr == "" {
			return fmt.Errorf("%w: region %q has no server", errMeta, l.name)
		}
		// After a region without end there may be none.
		if i > 0 && len(end) == 0 || !bytes.Equal(l.start, end) { //fault:hole-in-meta-ignored TestCheckChain
			return fmt.Errorf("%w: table %q: region %q begins at %x, want %x", errMeta, table, l.name, l.start, end)
		}
		end = l.stop
	}

	if len(end) != 0 {
		return fmt.Errorf("%w: table %q ends at %x, want a region after it", errMeta, table, end)
	}
	return nil
}

// overlapping returns the regions, sorted by start key, that overlap [start, stop).
func overlapping(locs []*location, start, stop []byte) []store.Region {
	var regions []store.Region
	for _, l := range locs {
		if len(l.stop) != 0 && bytes.Compare(l.stop, start) <= 0 {
			continue
		}
		if len(stop) != 0 && bytes.Compare(l.start, stop) >= 0 {
			break
		}
		regions = append(regions, store.Region{Start: l.start, Stop: l.stop, Server: l.addr, Name: string(l.name)})
	}
	return regions
}
