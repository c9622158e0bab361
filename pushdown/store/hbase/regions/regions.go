package regions

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

// Info is a region as a row of hbase:meta describes it.
type Info struct {
	Location
	Offline bool // it is the parent of a split, or disabled
	split   bool // it is the parent of a split
	Replica bool // it is a read replica
}

// parseRegion parses the cells info:regioninfo ("PBUF" and a RegionInfo
// message) and info:server ("host:port") of a row of hbase:meta. The slices of
// the result are copies.
func parseRegion(row store.Row) (*Info, error) {
	info := &Info{}
	found := false
	for _, c := range row.Cells {
		switch string(c.Qualifier) {
		case "regioninfo":
			if err := info.Decode(c.Value); err != nil {
				return nil, fmt.Errorf("%w: row %q: %w", ErrMeta, row.Key, err)
			}
			found = true
		case "server":
			info.Addr = string(c.Value)
		}
	}
	if !found {
		return nil, fmt.Errorf("%w: row %q has no regioninfo", ErrMeta, row.Key)
	}

	info.Name = bytes.Clone(row.Key)
	return info, nil
}

// Decode sets everything but name and addr from the value of info:regioninfo.
func (info *Info) Decode(value []byte) error {
	body, ok := bytes.CutPrefix(value, []byte("PBUF"))
	if !ok {
		return fmt.Errorf("cannot parse regioninfo: got % x, want it to begin with 50 42 55 46 (PBUF)",
			value[:min(len(value), 4)])
	}
	var m pb.RegionInfo
	if err := proto.Unmarshal(body, &m); err != nil {
		return fmt.Errorf("cannot parse regioninfo: %w", err)
	}

	info.Table = string(m.GetTableName().GetQualifier())
	if ns := string(m.GetTableName().GetNamespace()); ns != "default" && ns != "" {
		info.Table = ns + ":" + info.Table
	}
	info.Start, info.Stop = m.GetStartKey(), m.GetEndKey()
	info.split = m.GetSplit()
	info.Offline = m.GetOffline() || info.split
	info.Replica = m.GetReplicaId() != 0
	return nil
}

// List lists the regions that overlap [start, stop). It reads them from hbase:meta,
// repeatedly while a split, a merge or a move leaves a hole there. Later scans and
// writes find them in the region cache.
func (r *Router) List(ctx context.Context, table string, start, stop []byte) ([]store.Region, error) {
	if err := r.life.Begin(); err != nil {
		return nil, err
	}
	defer r.life.Done()

	retry := r.NewRetrier(ctx, table)
	for {
		locs, err := r.readRegions(ctx, table)
		if err == nil {
			r.regions.replace(table, locs)
			return overlapping(locs, start, stop), nil
		}

		// The scan of hbase:meta has retried already.
		if errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.Canceled) {
			return nil, err
		}
		if err := retry.AfterFailure(err); err != nil {
			return nil, err
		}
	}
}

// readRegions reads all regions of a table from hbase:meta, once, and checks that
// they form a chain.
func (r *Router) readRegions(ctx context.Context, table string) ([]*Location, error) {
	scan, err := r.cfg.Scan(ctx, store.Scan{
		Table: MetaTable,
		Start: []byte(table + ",,"),
		// hbase:meta sorts by the table first, and no table's name is in between; Java's client uses the same
		Stop:   []byte(table + " ,,"),
		Family: "info",
	})
	if err != nil {
		return nil, err
	}
	defer scan.Close()

	var locs []*Location
	listed := false // hbase:meta has a row of the table
	for {
		rows, err := scan.Next()
		// A table none of whose regions is served now does exist, so this is not ErrNoTable.
		if err == io.EOF && listed && len(locs) == 0 {
			return nil, fmt.Errorf("%w: no region of table %q is online", ErrMeta, table)
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
			listed = listed || info.Table == table
			if info.Table == table && !info.Offline && !info.Replica {
				locs = append(locs, &info.Location)
			}
		}
	}
}

// checkChain sorts regions by start key. It returns an error unless the first one
// starts at the empty key, each other one where the one before ends, and the last
// one has no end.
func checkChain(table string, locs []*Location) error {
	if len(locs) == 0 {
		return fmt.Errorf("%w: %q", store.ErrNoTable, table)
	}

	slices.SortFunc(locs, func(a, b *Location) int { return bytes.Compare(a.Start, b.Start) })
	var end []byte // of the region before
	for i, l := range locs {
		if l.Addr == "" {
			return fmt.Errorf("%w: region %q has no server", ErrMeta, l.Name)
		}
		// After a region without end there may be none.
		if i > 0 && len(end) == 0 || !bytes.Equal(l.Start, end) { //fault:hole-in-meta-ignored TestCheckChain
			return fmt.Errorf("%w: table %q: region %q begins at %x, want %x", ErrMeta, table, l.Name, l.Start, end)
		}
		end = l.Stop
	}

	if len(end) != 0 {
		return fmt.Errorf("%w: table %q ends at %x, want a region after it", ErrMeta, table, end)
	}
	return nil
}

// overlapping returns the regions, sorted by start key, that overlap [start, stop).
func overlapping(locs []*Location, start, stop []byte) []store.Region {
	var regions []store.Region
	for _, l := range locs {
		if len(l.Stop) != 0 && bytes.Compare(l.Stop, start) <= 0 {
			continue
		}
		if len(stop) != 0 && bytes.Compare(l.Start, stop) >= 0 {
			break
		}
		regions = append(regions, store.Region{Start: l.Start, Stop: l.Stop, Server: l.Addr, Name: string(l.Name)})
	}
	return regions
}
