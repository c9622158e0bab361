package hbasefake

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// SetClock sets the clock of all servers, in ms since 1970.
func (c *Cluster) SetClock(now func() int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// SetBehind sets the clock of one server back, by a time in ms.
func (c *Cluster) SetBehind(server int, behind int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.behind[server] = behind
}

// SetSlow makes raw scans from a time before until, in ms since 1970, too slow to end in time: as
// if a compaction had put cells of recent and of old times into one large file.
func (c *Cluster) SetSlow(until int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slowUntil = until
}

// RawScans returns how many raw scans, as for changes, were begun.
func (c *Cluster) RawScans() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rawScans
}

// Replicate lets the servers say that they have applied edits of another cluster.
func (c *Cluster) Replicate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replicated = true
}

// Delete deletes a column of a row, as of now.
func (c *Cluster) Delete(tableName, key, family, qualifier string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tables[tableName]
	x := cell{family: []byte(family), qualifier: []byte(qualifier), timestamp: c.clockOf(t, []byte(key))}
	if t.versions != nil {
		x.mark = deleteColumn
		t.record([]byte(key), x)
		return
	}
	t.log = append(t.log, logged{key: []byte(key), cell: x, deletes: true})
	t.regionOf([]byte(key)).point++
	t.set(t.get([]byte(key)).remove(change{cell: x, kind: deleteColumn}))
}

// Flush adds a file to each region of a table.
func (c *Cluster) Flush(tableName string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.tables[tableName].regions {
		r.files = append(slices.Clone(r.files), c.newFile(""))
		r.point++
	}
}

// LoadBulk loads a file with one cell, which has its own time in ms, into the region of key.
func (c *Cluster) LoadBulk(tableName, key, family, qualifier, value string, at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tables[tableName]
	x := cell{family: []byte(family), qualifier: []byte(qualifier), value: []byte(value), timestamp: at}
	t.log = append(t.log, logged{key: []byte(key), cell: x})
	t.set(t.get([]byte(key)).copied().put(x))
	r := t.regionOf([]byte(key))
	r.point++
	r.files = append(slices.Clone(r.files), c.newFile(fmt.Sprintf("_SeqId_%d_", r.point)))
}

// CompactAll replaces all files of each region by one. Delete markers, and the cells they mask, are
// removed.
func (c *Cluster) CompactAll(tableName string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tables[tableName]
	t.log = slices.DeleteFunc(slices.Clone(t.log),
		func(l logged) bool { return l.deletes || len(t.get(l.key).cells) == 0 })
	for _, r := range t.regions {
		r.files = []string{c.newFile("")}
		r.point++
	}
}

func (c *Cluster) newFile(suffix string) string {
	c.fileCount++
	return fmt.Sprintf("/hbase/data/default/t/r/t/%032x%s", c.fileCount, suffix)
}

// rawRows returns the rows of a table with all puts and deletions that were not dropped.
func (t *table) rawRows() []*row {
	byKey := map[string]*row{}
	var rows []*row
	for _, l := range t.log {
		r := byKey[string(l.key)]
		if r == nil {
			r = &row{key: l.key}
			byKey[string(l.key)] = r
			rows = append(rows, r)
		}
		r.cells = append(r.cells, l.cell)
	}
	slices.SortFunc(rows, func(a, b *row) int { return bytes.Compare(a.key, b.key) })
	return rows
}

// storeFiles executes AdminService.GetStoreFile, whose messages gohbase lacks: region 1,
// family 2; store_file 1.
func (s *server) storeFiles(param []byte) (proto.Message, []byte, error) {
	var spec pb.RegionSpecifier
	_, _, tag := protowire.ConsumeTag(param)
	region, n := protowire.ConsumeBytes(param[max(tag, 0):])
	if tag < 0 || n < 0 || proto.Unmarshal(region, &spec) != nil {
		return nil, nil, throw(doNotRetry, "GetStoreFile: %x", param)
	}
	_, r, err := s.servedRegion(&spec)
	if err != nil {
		return nil, nil, err
	}

	var b []byte
	for _, f := range r.files {
		b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), f)
	}
	response := &emptypb.Empty{}
	response.ProtoReflect().SetUnknown(b)
	return response, nil, nil
}

// newestVersion is the version of a master that lacks nothing.
const newestVersion = "2.6.4"

// clusterStatus executes MasterService.GetClusterStatus: each server has just reported.
func (s *server) clusterStatus() (proto.Message, []byte, error) {
	status := &pb.ClusterStatus{
		HbaseVersion: &pb.HBaseVersionFileContent{Version: proto.String(cmp.Or(s.c.opts.Version, newestVersion))},
	}
	for _, server := range s.c.servers {
		host, port, err := net.SplitHostPort(server.addr)
		if err != nil {
			return nil, nil, err
		}
		n, err := strconv.Atoi(port)
		if err != nil {
			return nil, nil, err
		}

		sink := &pb.ReplicationLoadSink{AgeOfLastAppliedOp: proto.Uint64(0), TimeStampsOfLastAppliedOp: proto.Uint64(0)}
		ops := uint64(0)
		if s.c.replicated {
			ops = 1
		}
		sink.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 4, protowire.VarintType), ops))
		status.LiveServers = append(status.LiveServers, &pb.LiveServerInfo{
			Server: &pb.ServerName{HostName: &host, Port: proto.Uint32(uint32(n)), StartCode: proto.Uint64(1)},
			ServerLoad: &pb.ServerLoad{
				ReportEndTime: proto.Uint64(uint64(s.c.clock() - s.c.behind[server.index])),
				ReplLoadSink:  sink,
			},
		})
	}
	return &pb.GetClusterStatusResponse{ClusterStatus: status}, nil, nil
}
