package tools_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/extra/tools"
	"downpour/gateway/extra/tools/pointfile/pointfiletest"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
)

// parquetLines are points of all types, of seconds and milliseconds, with and without tags of others, as an export
// orders them.
const parquetLines = "m 1356998400 1 host=a dc=b\nm 1356998401 1.0 host=a dc=b\nm 1356998402000 -0.0 host=a dc=b\n" +
	"m 1356998402250 9007199254740993 host=a dc=b\nm 1356998400 -9223372036854775808 host=c\n" +
	"m 1357002000 9223372036854775807 host=c\nm 1357002001 1e+300 host=c\nn 1356998400 5 value=v\n"

// parquetRow prints a row of a file.
func parquetRow(r pointfiletest.Row) string {
	value := r.Int
	if value == "null" {
		value = strconv.FormatFloat(math.Float64frombits(r.Bits), 'g', -1, 64)
	} else if v, _ := strconv.ParseInt(value, 10, 64); math.Float64bits(float64(v)) != r.Bits {
		value += " and another double"
	}
	text := fmt.Sprintf("%s %d %s", r.Texts["metric"], r.Time, value)
	for _, k := range slices.Sorted(maps.Keys(r.Texts)) {
		if k != "metric" {
			text += " " + k + "=" + r.Texts[k]
		}
	}
	return text
}

// An export as Parquet has the points of the requested series and times, as a client of a gateway, of an embedded store
// and of HBase gets them, in a file or on standard output. Annotations and histograms are counted.
func TestExport_parquet(t *testing.T) {
	for _, p := range []*place{embedded(t), onHBase(t), onHBase(t, func(c *gateway.Config) { c.SaltWidth = 1 })} {
		if err := p.tool("", strings.NewReader(parquetLines), "import", "-"); err != nil {
			t.Fatal(err)
		}
		p.use(func(st tools.Store) { addOddCells(t, st, p.cfg.Schema()) })

		file := filepath.Join(t.TempDir(), "points.parquet")
		f := func(url string, columns int, want []string, args ...string) {
			t.Helper()
			if err := p.tool(url, nil, "export", append(args, "-format", "parquet", "-o", file)...); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			names, rows, _ := pointfiletest.Read(t, data)
			var got []string
			for _, r := range rows {
				got = append(got, parquetRow(r))
			}
			slices.Sort(got) // a salted table has another order
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" || len(names) != columns {
				t.Errorf("%s %q: %d columns %q, want %d; %s", p.cfg.Store, args, len(names), names, columns, diff)
			}

			// Standard output has the same bytes, and nothing else.
			if err := p.tool(url, nil, "export", append(args, "-format", "parquet")...); err != nil {
				t.Fatal(err)
			}
			if p.out.String() != string(data) {
				t.Errorf("%s %q: standard output has other bytes than the file", p.cfg.Store, args)
			}
		}
		m := []string{
			"m 1356998400000 1 dc=b host=a", "m 1356998401000 1 dc=b host=a", "m 1356998402000 -0 dc=b host=a",
			"m 1356998402250 9007199254740993 dc=b host=a", "m 1356998400000 -9223372036854775808 host=c",
			"m 1356998500000 NaN host=c", "m 1356998501000 +Inf host=c", "m 1356998502000 -Inf host=c",
			"m 1357002000000 9223372036854775807 host=c", "m 1357002001000 1e+300 host=c",
		}
		all := append([]string{"n 1356998400000 5 tag_value=v"}, m...)
		ask := func(url string) {
			t.Helper()
			f(url, 6, m, "1356998400", "m")
			p.said("10 points of 1 metrics exported\n")
			p.said("left out: 1 annotations (-all takes them, in lines)")
			p.said("left out: 1 cells that are no points")
			f(url, 5, m[8:9], "1357001999", "1357002000", "m{host=c}")
			f(url, 7, all, "-all", "1356998400")
			p.said("11 points of 2 metrics exported\n")
			f(url, 6, nil, "1356998403", "1356998404", "m") // rows, but no points
			f(url, 4, nil, "1400000000", "m")
			p.said("0 points of 1 metrics exported\n")
		}
		ask("http://127.0.0.1:1")
		if p.fake == nil { // on HBase a tool goes to the tables
			p.serve(func(url string, _ tools.Store) { ask(url) })
		}
	}
}

// addOddCells adds values that no put takes, an annotation and a histogram to m{host=c}.
func addOddCells(t *testing.T, st tools.Store, schema encoding.Schema) {
	t.Helper()
	add := func(qualifier, value []byte) { addCell(t, st, schema, "1356998400 host c", qualifier, value) }
	for i, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		q := encoding.Qualifier{OffsetMS: int32(100_000 + 1000*i), Float: true, Width: 8}
		add(encoding.AppendQualifier(nil, q), encoding.AppendDouble(nil, v))
	}
	add(encoding.AppendAnnotationQualifier(nil, 1356998410), []byte(`{"startTime":1356998410,"description":"x"}`))
	add(encoding.AppendHistogramQualifier(nil, 7000, false), []byte{0})
}

// addCell adds a cell to a row of m, which is its base time and its one tag.
func addCell(t *testing.T, st tools.Store, schema encoding.Schema, row string, qualifier, value []byte) {
	t.Helper()
	var base uint32
	var key, tag string
	if _, err := fmt.Sscan(row, &base, &key, &tag); err != nil {
		t.Fatal(err)
	}
	names := uid.New(uid.Config{Store: st, Table: "tsdb-uid", Schema: schema})
	of := func(kind encoding.UIDKind, name string) encoding.UID {
		u, err := names.Assign(t.Context(), kind, name)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	series := schema.AppendTags(nil, []encoding.TagPair{{K: of(encoding.UIDTagK, key), V: of(encoding.UIDTagV, tag)}})
	if err := st.Apply(t.Context(), "tsdb", []store.Mutation{{
		Row:       schema.AppendRowKey(nil, of(encoding.UIDMetric, "m"), base, series),
		Family:    "t",
		Qualifier: qualifier,
		Value:     value,
	}}); err != nil {
		t.Fatal(err)
	}
}

// Arguments that cannot be meant are refused, and an export that fails leaves no file, and an
// earlier one as it is: of a metric that is not there, or when the tag keys change while it runs,
// or when the disk is full.
func TestExport_parquetFails(t *testing.T) {
	p := embedded(t)
	if err := p.tool("", strings.NewReader(parquetLines), "import", "-"); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"tagk", "tagv"} {
		p.mustTool("uid", "assign", kind, "rack")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "points.parquet")
	if err := os.WriteFile(file, []byte("earlier"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(want string, args ...string) {
		t.Helper()
		p.failTool(want, "export", append([]string{"-o", file}, args...)...)
		left, err := os.ReadDir(dir)
		text, errRead := os.ReadFile(file)
		if err != nil || len(left) != 1 || errRead != nil || string(text) != "earlier" {
			t.Errorf("%q: %v, %v, %v is left, %q in the file; want the earlier file", args, err, errRead, left, text)
		}
	}
	f("No such name", "-format", "parquet", "1", "nope")
	f(`-format: got "csv", want lines or parquet`, "-format", "csv", "1", "m")
	f("want no .gz", "-format", "parquet", "-o", filepath.Join(dir, "points.gz"), "1", "m")

	open, schema := p.open, p.cfg.Schema()
	p.open = func() (tools.Store, error) {
		st, err := open()
		return &between{Store: st, then: func() {
			q := encoding.Qualifier{Width: 1}
			addCell(t, st, schema, "1357002000 rack rack", encoding.AppendQualifier(nil, q), []byte{1})
		}}, err
	}
	f(`tag key "rack" is new`, "-format", "parquet", "1", "m")
	p.open = open
	if p.mustTool("export", "-format", "parquet", "1", "m"); !strings.Contains(p.out.String(), "rack") {
		t.Error("run again: want the new tag key")
	}

	// A gateway of an earlier release knows no formats.
	earlier := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, map[bool]string{true: "{}", false: `#end {"metrics":1}`}[r.URL.Path == "/api/config"])
	}))
	defer earlier.Close()
	f("earlier release", "-gateway", earlier.URL, "-format", "parquet", "1", "m")

	p.to = full{}
	if err := p.tool("", nil, "export", "-format", "parquet", "1", "m"); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
}

// A row group is reserved in the gateway's memory: an export as Parquet is refused where there is not enough for it.
func TestExport_parquetMemory(t *testing.T) {
	p := embedded(t)
	if err := p.tool("", strings.NewReader(parquetLines), "import", "-"); err != nil {
		t.Fatal(err)
	}
	p.cfg.Memory = "64MiB"
	p.serve(func(url string, _ tools.Store) {
		if err := p.tool(url, nil, "export", "1", "m"); err != nil {
			t.Errorf("lines: %v", err)
		}
		p.refusedAt(url, "answered 413", "export", "-format", "parquet", "1", "m")
	})
}

// between is a store in which something happens between the scan of keys of a stretch and the next one of its rows.
type between struct {
	tools.Store
	then func()
	keys bool
	once sync.Once
}

func (b *between) Features() store.Features { return b.Store.Features() }

func (b *between) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	if s.Table == "tsdb" && len(s.Stop) > 0 {
		if b.keys = b.keys || s.KeysOnly; b.keys && !s.KeysOnly {
			b.once.Do(b.then)
		}
	}
	return b.Store.Scan(ctx, s)
}

var errFull = errors.New("no space left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
