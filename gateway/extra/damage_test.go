package extra_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store"
)

// With a damaged block in a file of the store the gateway starts. Queries that read the block fail
// at once and name the file; other metrics can be queried and exported.
func TestStart_damagedTable(t *testing.T) {
	cfg, files := config(0), vfs.NewMem()
	st := gatewaytest.Embedded(t, cfg, files)
	b := serve(t, cfg, st)
	for _, metric := range []string{"first", "last"} {
		var points []string
		for n := range 1500 {
			points = append(points, fmt.Sprintf(`{"metric":%q,"timestamp":%d,"value":%d.5,"tags":{"host":"h%02d"}}`,
				metric, 1356998400+n/50*3600, n, n%50))
		}
		if a := b.Post("api/put", "["+strings.Join(points, ",")+"]"); a.Status != 204 {
			t.Fatalf("put: %d, %s", a.Status, a.Body)
		}
	}
	if err := b.Gateway.Close(); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	table := harmFirst(t, files)

	st = gatewaytest.Embedded(t, cfg, files)
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
	b = &bench{T: t, Config: cfg, Gateway: g}
	b.Refused(b.Get("api/query?start=1356998400&end=1357998400&m=sum:first"), 500, table)
	if a := b.Get("api/query?start=1356998400&end=1357998400&m=count:last"); a.Status != 200 ||
		!strings.Contains(a.Body, `"1356998400":50`) {
		t.Errorf("another metric: %d, %.300s", a.Status, a.Body)
	}
	if a := b.Get("api/tools/export?start=1356998400&m=last"); a.Status != 200 ||
		strings.Count(a.Body, "last ") != 1500 || !strings.Contains(a.Body, "#end ") {
		t.Errorf("export of another metric: %d, %d points, %.300s", a.Status, strings.Count(a.Body, "last "), a.Body)
	}
	b.Put("last 1356999000 1 host=new")
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

// What is made of fewer rows says so, and is not kept: gexp, and pictures in every form.
//
//fault:damaged-rows-of-pictures-untold queryroutes.SetIncompleteHeader(w, g.stats) => _ = 0
func TestFix_damagedPictures(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.Fix = "damaged" })
	b.Put("m 1356998400 1 host=a", "m 1356998400 2 host=b", "m 1357002000 3 host=a")
	key := b.Config.Schema().AppendRowKey(nil, encoding.UID{0, 0, 1}, 1357002000, []byte{0, 0, 1, 0, 0, 2})
	answers := func(value, want string) { // the value of a compacted cell of two points, with or without its last byte
		t.Helper()
		err := b.Store.Apply(t.Context(), "tsdb",
			[]store.Mutation{{Row: key, Family: "t", Qualifier: []byte{0, 0, 0, 0x10}, Value: []byte(value)}})
		if err != nil {
			t.Fatal(err)
		}
		const times = "start=1356998400&end=1357005599&"
		for _, path := range []string{"/api/query/gexp?" + times + "exp=scale(sum:m,2)",
			"/q?" + times + "m=sum:m&ascii", "/q?" + times + "m=sum:m&json", "/q?" + times + "m=sum:m&png",
			"/q?" + times + "m=sum:m&svg"} {
			a := b.Get(path)
			if got := a.Header.Get("Downpour-Damaged-Rows"); a.Status != 200 || got != want {
				t.Errorf("%s: %d %.200s, %q rows left out, want %q", path, a.Status, a.Body, got, want)
			}
			age := a.Header.Get("Cache-Control")
			if want != "" && age != "" && age != "no-cache" && age != "max-age=0" {
				t.Errorf("%s: %s, want that it is not kept", path, age)
			}
		}
	}
	answers("\x04\x05", "1")
	answers("\x04\x05\x00", "")
}
