package hbase

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/cellblock"
	"downpour/pushdown/store/hbase/regions"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// versionKinds are the types of cells that a raw scan returns.
var versionKinds = map[byte]store.VersionKind{
	cellblock.Put:                 store.PutVersion,
	cellblock.Delete:              store.VersionMarker,
	cellblock.DeleteFamilyVersion: store.FamilyVersionMarker,
	cellblock.DeleteColumn:        store.ColumnMarker,
	cellblock.DeleteFamily:        store.FamilyMarker,
}

// Versions reads rows with a raw scan that is opened and closed in one call. After a
// failure the call is repeated. Of several puts with one qualifier and timestamp servers
// return the one that counts.
func (st *Store) Versions(ctx context.Context, table, family string, keys store.KeyRange,
	maxRows int) ([]store.VersionRow, []byte, error) {
	var region *regions.Location
	call, err := st.router.CallRow(ctx, table, keys.Start, regions.ResendLost,
		func(ctx context.Context, loc *regions.Location) *calls.Call {
			region = loc
			return calls.New(ctx, "Scan", versionsRequest(loc, family, keys, maxRows), &pb.ScanResponse{})
		})
	if err != nil {
		return nil, nil, err
	}

	response := call.Response.(*pb.ScanResponse)
	rows, err := decodeVersions(call.Cells, response.GetCellsPerResult())
	if err != nil {
		return nil, nil, fmt.Errorf("table %q: %w from %s: %w", table, errReply, region.Addr, err)
	}
	for i, row := range rows {
		inside := store.KeyRange{Start: keys.Start, Stop: keys.Stop}.Contains(row.Key) && region.Contains(row.Key)
		if !inside || i > 0 && bytes.Compare(rows[i-1].Key, row.Key) >= 0 {
			return nil, nil, fmt.Errorf("table %q: %w from %s: row %x, want rows from %x on in order", table, errReply,
				region.Addr, row.Key, keys.Start)
		}
	}

	// A reply that a limit has cut continues after its last row.
	if response.MoreResultsInRegion == nil || response.GetMoreResultsInRegion() {
		if len(rows) == 0 {
			return nil, nil, fmt.Errorf("table %q: %w from %s: no row, and not the region's end", table, errReply,
				region.Addr)
		}
		return rows, append(bytes.Clone(rows[len(rows)-1].Key), 0), nil
	}
	return rows, afterRegion(region.Stop, keys.Stop), nil
}

// afterRegion returns the key at which the next region begins, nil if nothing is wanted from there on. The last region
// has no stop.
func afterRegion(stop, wanted []byte) []byte {
	if len(stop) == 0 || len(wanted) != 0 && bytes.Compare(stop, wanted) >= 0 {
		return nil
	}
	return stop
}

// versionsRequest returns the request of Versions. Without partial results and heartbeats
// the server returns whole rows, at least one unless it has come to the region's end.
func versionsRequest(loc *regions.Location, family string, keys store.KeyRange, maxRows int) *pb.ScanRequest {
	scan := &pb.Scan{
		StartRow:      keys.Start,
		StopRow:       keys.Stop,
		Column:        []*pb.Column{{Family: []byte(family)}},
		MaxVersions:   proto.Uint32(math.MaxInt32),
		MaxResultSize: proto.Uint64(defaultBlockBytes),
		// A job in the background must not drive from the cache what queries read.
		CacheBlocks: proto.Bool(false),
	}
	calls.Raw(scan)
	calls.Pread(scan)
	return &pb.ScanRequest{
		Region:                  calls.RegionSpecifier(loc.Name),
		Scan:                    scan,
		NumberOfRows:            proto.Uint32(uint32(maxRows)),
		NextCallSeq:             proto.Uint64(0),
		CloseScanner:            proto.Bool(true),
		ClientHandlesPartials:   proto.Bool(false),
		ClientHandlesHeartbeats: proto.Bool(false),
	}
}

// decodeVersions decodes a cell block of whole rows; counts holds the number of cells of
// each.
func decodeVersions(block []byte, counts []uint32) ([]store.VersionRow, error) {
	var rows []store.VersionRow
	for _, n := range counts {
		if n == 0 {
			continue // only a cell would name the row
		}

		row := store.VersionRow{Versions: make([]store.Version, 0, min(int(n), len(block)/cellblock.Overhead+1))}
		for range n {
			var cell store.Cell
			key, rest, err := cellblock.Split(block, &cell)
			if err != nil {
				return nil, err
			}
			if row.Key == nil {
				row.Key = key
			} else if !bytes.Equal(row.Key, key) {
				return nil, fmt.Errorf("%w: row %x among cells of row %x", cellblock.ErrMalformed, key, row.Key)
			}

			code := cellblock.Type(block)
			kind, ok := versionKinds[code]
			if !ok {
				return nil, fmt.Errorf("%w: a cell of type %d in row %x, want a put or a deletion",
					cellblock.ErrMalformed, code, key)
			}
			row.Versions = append(row.Versions,
				store.Version{Kind: kind, Qualifier: cell.Qualifier, Value: cell.Value, Timestamp: cell.Timestamp})
			block = rest
		}
		rows = append(rows, row)
	}

	if len(block) > 0 {
		return nil, fmt.Errorf("%w: %d bytes after the last cell", cellblock.ErrMalformed, len(block))
	}
	return rows, nil
}

// CheckVersions reads the description of a table, and tries a conditional change. Deletions of versions gain nothing
// in a family that keeps deleted cells. With the newer behaviour of versions a marker hides only earlier writes, and
// the store's engine may be unknown.
func (st *Store) CheckVersions(ctx context.Context, table, family string) error {
	schema, err := st.router.Describe(ctx, table)
	if err != nil {
		return err
	}
	if engine := regions.StoreEngine(schema, family); engine != "" {
		return fmt.Errorf("table %q has the store engine %s, want the default", table, engine)
	}

	attributes := regions.FamilyAttributes(schema, []byte(family))
	if attributes == nil {
		return fmt.Errorf("table %q has no family %q", table, family)
	}
	for _, name := range []string{"KEEP_DELETED_CELLS", "NEW_VERSION_BEHAVIOR"} {
		if v, ok := attributes[name]; ok && !strings.EqualFold(v, "false") {
			return fmt.Errorf(
				"table %q, family %q: %s is %q, want FALSE: old versions of cells would stay, "+
					"or be hidden by other rules",
				table, family, name, v)
		}
	}
	return st.probeConditions(ctx, table, family)
}

// probeConditions returns an error if a server does not know conditions on region actions: it would
// carry out every change. The change here is harmless then, because it deletes nothing that exists.
func (st *Store) probeConditions(ctx context.Context, table, family string) error {
	_, err := st.ChangeIf(ctx, table, family,
		[]store.ConditionalChange{{Row: changeMarker, If: store.Condition{Stamps: []int64{1}}}})
	return err
}
