package hbasefake

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/tsuna/gohbase/pb"
	"github.com/tsuna/gohbase/region"
	"google.golang.org/protobuf/proto"
)

// metaEntry is a region's entry in hbase:meta: which server opened it last, under which
// number, and when the master wrote that.
type metaEntry struct {
	server       string // host:port; empty before the first opening
	number       uint64 // seqnumDuringOpen
	writtenAt    int64  // of server and number, ms; no two entries of a cluster have the same
	state        string // OPENING, OPEN, SPLIT
	stateWritten int64  // ms
}

// startCode is the start code of every server process. A region server that is
// restarted in a test is the same process that has lost its connections.
const startCode = 1_700_000_000_000

// openRegion makes a server open a region. The region's number goes up by two, as if it had been
// closed in good order. The master writes the opening to hbase:meta, immediately or later, see
// DelayCatalog.
func (c *Cluster) openRegion(r *regionState, server int) {
	r.server = server
	r.number = r.point + 1
	r.point = r.number + 1

	c.writeMeta(r, "OPENING")
	if c.delayed {
		c.unwritten = append(c.unwritten, r)
		return
	}
	c.writeMeta(r, "OPEN")
}

// writeMeta writes the state of a region, and of an open one the opening, to
// hbase:meta.
func (c *Cluster) writeMeta(r *regionState, state string) {
	c.catalogPoint++
	c.catalogTime = max(c.catalogTime+1, c.clock()) // no two writes have the same time

	// All cells of an opening have one time, as those of one put.
	if state == "OPEN" {
		r.meta = metaEntry{c.servers[r.server].addr, r.number, c.catalogTime, state, c.catalogTime}
		return
	}
	r.meta.state, r.meta.stateWritten = state, c.catalogTime
}

// DelayCatalog delays the writes of openings to hbase:meta from now on: a region is
// served before its row names the opening. The row says OPENING until catchUp is
// called, which writes all of them and ends the delay.
func (c *Cluster) DelayCatalog() (catchUp func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delayed = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()

		for _, r := range c.unwritten {
			c.writeMeta(r, "OPEN")
		}
		c.delayed, c.unwritten = false, nil
	}
}

// TouchCatalog changes hbase:meta, but none of the rows that a client reads.
func (c *Cluster) TouchCatalog() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catalogPoint++
}

// Dump returns all cells of a table, one a line.
func (c *Cluster) Dump(tableName string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, r := range c.tables[tableName].rows {
		for _, cell := range r.cells {
			fmt.Fprintf(&b, "%q %s:%q %q\n", r.key, cell.family, cell.qualifier, cell.value)
		}
	}
	return b.String()
}

// CatalogRowReads returns how often rows of hbase:meta were requested since SetHook.
func (c *Cluster) CatalogRowReads() int { return c.Calls(catalogRowRead) }

// CatalogPointReads returns how often only the read point of hbase:meta was
// requested since SetHook.
func (c *Cluster) CatalogPointReads() int { return c.Calls(catalogPointRead) }

// Names under which calls counts requests to hbase:meta.
const (
	catalogRowRead   = "rows of hbase:meta"
	catalogPointRead = "read point of hbase:meta"
)

// metaRows returns the rows of hbase:meta, in its order.
func (c *Cluster) metaRows() []*row {
	var rows []*row
	for _, t := range c.tables {
		ns, name, ok := strings.Cut(t.name, ":")
		if !ok {
			ns, name = "default", t.name
		}
		for _, r := range t.regions {
			info := &pb.RegionInfo{
				RegionId:  &r.id,
				TableName: &pb.TableName{Namespace: []byte(ns), Qualifier: []byte(name)},
				StartKey:  r.start,
				EndKey:    r.stop,
				Offline:   proto.Bool(r.offline),
				Split:     proto.Bool(r.offline), // only the parent of a split is offline here
			}
			cells := r.meta.cells(append([]byte("PBUF"), pb.MustMarshal(info)...))
			if c.version.before(2, 0) {
				cells = slices.DeleteFunc(cells, func(x cell) bool {
					return string(x.qualifier) == "state" || string(x.qualifier) == "sn"
				})
			}
			rows = append(rows, &row{r.name, cells})
		}
	}

	slices.SortFunc(rows, func(a, b *row) int { return region.Compare(a.key, b.key) })
	return rows
}

// cells returns the cells of the entry's row of hbase:meta. info is the value of
// regioninfo.
func (e metaEntry) cells(info []byte) []cell {
	all := map[string][]byte{"regioninfo": info}
	if e.server != "" {
		all["server"] = []byte(e.server)
		all["sn"] = fmt.Appendf(nil, "%s,%d", strings.Replace(e.server, ":", ",", 1), startCode)
		all["serverstartcode"] = binary.BigEndian.AppendUint64(nil, startCode)
		all["seqnumDuringOpen"] = binary.BigEndian.AppendUint64(nil, e.number)
	}

	cells := []cell{{
		family:    []byte("info"),
		qualifier: []byte("state"),
		value:     []byte(e.state),
		timestamp: e.stateWritten,
	}}
	for qualifier, value := range all {
		cells = append(cells, cell{
			family:    []byte("info"),
			qualifier: []byte(qualifier),
			value:     value,
			timestamp: e.writtenAt,
		})
	}

	slices.SortFunc(cells, compareCells)
	return cells
}
