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

// regionInfo is one row of hbase:meta.
type regionInfo struct {
	location
	offline bool // parent of a split, or disabled
	replica bool
}

// parseRegion reads the cells info:regioninfo ("PBUF" and a RegionInfo
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

// decode reads the value of info:regioninfo.
func (info *regionInfo) decode(value []byte) error {
	body, ok := bytes.CutPrefix(value, []byte("PBUF"))
	if !ok {
		return fmt.Errorf("regioninfo: got % x, want it to begin with 50 42 55 46 (PBUF)", value[:min(len(value), 4)])
	}
	var m pb.RegionInfo
	if err := proto.Unmarshal(body, &m); err != nil {
		return fmt.Errorf("regioninfo: %w", err)
	}
	info.table = string(m.GetTableName().GetQualifier())
	if ns := string(m.GetTableName().GetNamespace()); ns != "default" && ns != "" {
		info.table = ns + ":" + info.table
	}
	info.start, info.stop = m.GetStartKey(), m.GetEndKey()
	info.offline = m.GetOffline() || m.GetSplit()
	info.replica = m.GetReplicaId() != 0
	return nil
}

// Regions lists the regions that touch [start, stop) from hbase:meta, which is
// read again while a split, a merge or a move leaves a hole in it. What it
// learns also serves later scans and writes.
func (st *Store) Regions(ctx context.Context, table string, start, stop []byte) ([]store.Region, error) {
	if err := st.enter(); err != nil {
		return nil, err
	}
	defer st.wg.Done()
	retry := st.newRetrier(ctx, table)
	for {
		locs, err := st.readRegions(ctx, table)
		if err == nil {
			st.regions.replace(table, locs)
			return touching(locs, start, stop), nil
		}
		if errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.Canceled) {
			return nil, err // the scan inside has waited already
		}
		if err := retry.after(err); err != nil {
			return nil, err
		}
	}
}

// readRegions reads all regions of a table once and checks their chain.
func (st *Store) readRegions(ctx context.Context, table string) ([]*location, error) {
	scan, err := st.Scan(ctx, store.Scan{
		Table:  metaTable,
		Start:  []byte(table + ",,"),
		Stop:   []byte(table + " ,,"), // a space sorts before the comma: Java's client uses the same
		Family: "info",
	})
	if err != nil {
		return nil, err
	}
	defer scan.Close()
	var locs []*location
	seen := false
	for {
		rows, err := scan.Next()
		if err == io.EOF && seen && len(locs) == 0 {
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
			seen = seen || info.table == table
			if info.table == table && !info.offline && !info.replica {
				locs = append(locs, &info.location)
			}
		}
	}
}

// checkChain sorts regions and demands that each ends where the next begins.
func checkChain(table string, locs []*location) error {
	if len(locs) == 0 {
		return fmt.Errorf("%w: %q", store.ErrNoTable, table)
	}
	slices.SortFunc(locs, func(a, b *location) int { return bytes.Compare(a.start, b.start) })
	var end []byte
	for i, l := range locs {
		if l.addr == "" {
			return fmt.Errorf("%w: region %q has no server", errMeta, l.name)
		}
		if i > 0 && len(end) == 0 || !bytes.Equal(l.start, end) {
			return fmt.Errorf("%w: table %q: region %q begins at %x, want %x", errMeta, table, l.name, l.start, end)
		}
		end = l.stop
	}
	if len(end) != 0 {
		return fmt.Errorf("%w: table %q ends at %x, want a region behind it", errMeta, table, end)
	}
	return nil
}

// touching selects the regions that overlap [start, stop).
func touching(locs []*location, start, stop []byte) []store.Region {
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
