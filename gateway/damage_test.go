package gateway_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/gateway/gatewaytest"
)

// full is a file system whose free space the test sets.
type full struct {
	vfs.FS
	free atomic.Uint64
}

func (f *full) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: f.free.Load(), TotalBytes: 1 << 30}, nil
}

// On a disk that is nearly full puts are refused for that reason, queries are answered, and the
// gateway is not ready. Once there is room again puts are stored and the gateway is ready.
func TestPut_fullDisk(t *testing.T) {
	cfg, files := config(0), &full{FS: vfs.NewMem()}
	files.free.Store(1 << 29)
	st := gatewaytest.Embedded(t, cfg, files)
	defer st.Close()
	b := serve(t, cfg, st)
	point := func(n int, host string) string {
		return fmt.Sprintf(`{"metric":"m","timestamp":%d,"value":%d,"tags":{"host":%q}}`, 1356998400+n, n, host)
	}
	put := func(n int, host string) answer { return b.Post("api/put", point(n, host)) }
	if a := put(0, "old"); a.Status != 204 {
		t.Fatalf("put: %d, %s", a.Status, a.Body)
	}
	files.free.Store(7 << 20)
	b.Refused(put(1, "old"), 503, "no room on the disk")
	b.Refused(put(1, "new"), 503, "no room on the disk") // a new name, which is written before its point
	b.Refused(b.Post("api/put?sync", point(2, "old")), 503, "7168 KiB are free")
	if a := b.Get("readyz"); a.Status != 503 {
		t.Errorf("readyz: %d, %s, want 503", a.Status, a.Body)
	}
	if a := b.Get("api/query?start=1356998400&end=1356998500&m=sum:m"); a.Status != 200 ||
		!strings.Contains(a.Body, `"1356998400":0}`) {
		t.Errorf("query: %d, %s", a.Status, a.Body)
	}
	files.free.Store(60 << 20) // a twentieth of the disk is kept back
	for _, host := range []string{"old", "new"} {
		if a := put(3, host); a.Status != 204 {
			t.Errorf("put with room again: %d, %s", a.Status, a.Body)
		}
	}
	if a := b.Get("readyz"); a.Status != 200 {
		t.Errorf("readyz: %d, %s", a.Status, a.Body)
	}
}
