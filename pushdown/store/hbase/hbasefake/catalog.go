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

// listing is what hbase:meta says of a region: who opened it last, under which
// number, and when the master wrote that down. Before the first opening it has no
// server.
type listing struct {
	server string // host:port
	number uint64 // seqnumDuringOpen
	at     int64  // ms; no two listings of a cluster have the same
	state  string // OPENING, OPEN, SPLIT
	stated int64  // when the state was written, ms
}

// startCode is that of every server process: a region server that comes back in a
// test is the same one, with its connections lost.
const startCode = 1_700_000_000_000

// open has a server open a region, the number of which goes up by two, as if it
// had been closed in good order; the master writes that down, see DelayCatalog.
func (c *Cluster) open(r *regionState, server int) {
	r.server = server
	r.number = r.point + 1
	r.point = r.number + 1
	c.list(r, "OPENING")
	if c.delayed {
		c.unlisted = append(c.unlisted, r)
		return
	}
	c.list(r, "OPEN")
}

// list writes the row of a region into hbase:meta.
func (c *Cluster) list(r *regionState, state string) {
	c.catalogPoint++
	c.catalogTime = max(c.catalogTime+1, now())
	if state == "OPEN" {
		r.listed = listing{c.servers[r.server].addr, r.number, c.catalogTime, state, c.catalogTime}
		return
	}
	r.listed.state, r.listed.stated = state, c.catalogTime
}

// DelayCatalog lets hbase:meta hear late of what opens from now on: a region is
// served before its row names the opening. Until the function is called that it
// returns, the row says OPENING.
func (c *Cluster) DelayCatalog() (catchUp func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delayed = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, r := range c.unlisted {
			c.list(r, "OPEN")
		}
		c.delayed, c.unlisted = false, nil
	}
}

// TouchCatalog changes hbase:meta, but none of its rows that somebody reads.
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

// CatalogRowReads tells how often rows of hbase:meta were asked for since SetHook.
func (c *Cluster) CatalogRowReads() int { return c.Calls(catalogRowRead) }

// CatalogPointReads tells how often the read point of hbase:meta alone was.
func (c *Cluster) CatalogPointReads() int { return c.Calls(catalogPointRead) }

const catalogRowRead, catalogPointRead = "Scan of hbase:meta", "look at hbase:meta"

// metaRows makes the rows of hbase:meta, in its order.
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
				Split:     proto.Bool(r.offline),
			}
			rows = append(rows, &row{r.name, r.listed.cells(append([]byte("PBUF"), pb.MustMarshal(info)...))})
		}
	}
	slices.SortFunc(rows, func(a, b *row) int { return region.Compare(a.key, b.key) })
	return rows
}

// cells are those of a row of hbase:meta.
func (l listing) cells(info []byte) []cell {
	all := map[string][]byte{"regioninfo": info}
	if l.server != "" {
		all["server"] = []byte(l.server)
		all["serverstartcode"] = binary.BigEndian.AppendUint64(nil, startCode)
		all["seqnumDuringOpen"] = binary.BigEndian.AppendUint64(nil, l.number)
	}
	cells := []cell{{[]byte("info"), []byte("state"), []byte(l.state), l.stated}}
	for qualifier, value := range all {
		cells = append(cells, cell{[]byte("info"), []byte(qualifier), value, l.at})
	}
	slices.SortFunc(cells, compareCells)
	return cells
}
