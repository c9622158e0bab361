package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/gateway"
	"downpour/gateway/metadata/tables"
	"downpour/pushdown/store/pebble"
)

// full is a file system whose free space the test sets.
type full struct {
	vfs.FS
	free atomic.Uint64
}

func (f *full) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: f.free.Load(), TotalBytes: 1 << 30}, nil
}

// embeddedStore opens the store of a file system, with the tables of cfg.
func embeddedStore(t *testing.T, cfg *gateway.Config, files vfs.FS) gateway.Store {
	t.Helper()
	st, err := pebble.Open("data", pebble.Options{FS: files, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := tables.Create(t.Context(), st, tables.Specs(cfg.TableNames(), cfg.Schema(), "NONE")); err != nil {
		t.Fatal(err)
	}
	return st
}

// With a damaged block in a file of the store the gateway starts. Queries that read the block fail
// at once and name the file; other metrics can be queried and exported.
func TestStart_damagedTable(t *testing.T) {
	cfg, files := config(0), vfs.NewMem()
	st := embeddedStore(t, cfg, files)
	b := &bench{T: t, cfg: cfg, store: &faulty{Store: st}, g: start(t, cfg, st)}
	for _, metric := range []string{"first", "last"} {
		var points []string
		for n := range 1500 {
			points = append(points, fmt.Sprintf(`{"metric":%q,"timestamp":%d,"value":%d.5,"tags":{"host":"h%02d"}}`, metric, 1356998400+n/50*3600, n, n%50))
		}
		if a := b.post("api/put", "["+strings.Join(points, ",")+"]"); a.status != 204 {
			t.Fatalf("put: %d, %s", a.status, a.body)
		}
	}
	if err := b.g.Close(); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	table := harmFirst(t, files)

	st = embeddedStore(t, cfg, files)
	defer st.Close()
	var log bytes.Buffer
	g, err := gateway.Start(t.Context(), cfg, st, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if !strings.Contains(log.String(), table) {
		t.Errorf("want a log that names %s, got: %s", table, &log)
	}
	b = &bench{T: t, cfg: cfg, g: g}
	b.refused(b.get("api/query?start=1356998400&end=1357998400&m=sum:first"), 500, table)
	if a := b.get("api/query?start=1356998400&end=1357998400&m=count:last"); a.status != 200 || !strings.Contains(a.body, `"1356998400":50`) {
		t.Errorf("another metric: %d, %.300s", a.status, a.body)
	}
	if a := b.get("api/tools/export?start=1356998400&m=last"); a.status != 200 || strings.Count(a.body, "last ") != 1500 || !strings.Contains(a.body, "#end ") {
		t.Errorf("export of another metric: %d, %d points, %.300s", a.status, strings.Count(a.body, "last "), a.body)
	}
	b.put("last 1356999000 1 host=new")
}

// harmFirst changes a byte in the first block of the largest .sst file and returns its name.
func harmFirst(t *testing.T, files *vfs.MemFS) (table string) {
	t.Helper()
	names, err := files.List("data")
	if err != nil {
		t.Fatal(err)
	}
	var data []byte
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		f, err := files.Open("data/" + name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if len(b) > len(data) {
			table, data = name, b
		}
	}
	data[100] ^= 1
	f, err := files.Create("data/"+table, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	f.Close()
	return table
}

// On a disk that is nearly full puts are refused for that reason, queries are answered, and the
// gateway is not ready. Once there is room again puts are stored and the gateway is ready.
func TestPut_fullDisk(t *testing.T) {
	cfg, files := config(0), &full{FS: vfs.NewMem()}
	files.free.Store(1 << 29)
	st := embeddedStore(t, cfg, files)
	defer st.Close()
	b := &bench{T: t, cfg: cfg, store: &faulty{Store: st}, g: start(t, cfg, st)}
	point := func(n int, host string) string {
		return fmt.Sprintf(`{"metric":"m","timestamp":%d,"value":%d,"tags":{"host":%q}}`, 1356998400+n, n, host)
	}
	put := func(n int, host string) answer { return b.post("api/put", point(n, host)) }
	if a := put(0, "old"); a.status != 204 {
		t.Fatalf("put: %d, %s", a.status, a.body)
	}
	files.free.Store(7 << 20)
	b.refused(put(1, "old"), 503, "no room on the disk")
	b.refused(put(1, "new"), 503, "no room on the disk") // a new name, which is written before its point
	b.refused(b.post("api/put?sync", point(2, "old")), 503, "7168 KiB are free")
	if a := b.get("readyz"); a.status != 503 {
		t.Errorf("readyz: %d, %s, want 503", a.status, a.body)
	}
	if a := b.get("api/query?start=1356998400&end=1356998500&m=sum:m"); a.status != 200 || !strings.Contains(a.body, `"1356998400":0}`) {
		t.Errorf("query: %d, %s", a.status, a.body)
	}
	files.free.Store(60 << 20) // a twentieth of the disk is kept back
	for _, host := range []string{"old", "new"} {
		if a := put(3, host); a.status != 204 {
			t.Errorf("put with room again: %d, %s", a.status, a.body)
		}
	}
	if a := b.get("readyz"); a.status != 200 {
		t.Errorf("readyz: %d, %s", a.status, a.body)
	}
}
