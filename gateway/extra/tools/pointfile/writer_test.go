package pointfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/gateway/extra/tools/pointfile"
	"downpour/gateway/extra/tools/pointfile/pointfiletest"
	"downpour/gateway/write"
)

const groupRows = 128 << 10

func tags(pairs ...string) (all []write.Tag) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, write.Tag{K: pairs[i], V: pairs[i+1]})
	}
	return all
}

// series is one of the metric m.
func series(tags []write.Tag) pointfile.Series { return pointfile.Series{Metric: "m", Tags: tags} }

var hosts = batch.ResultColumns{TagKeys: []string{"host"}}

func texts(metric string, all []write.Tag, column map[string]string) map[string]string {
	m := map[string]string{"metric": metric}
	for _, t := range all {
		name := t.K
		if column[t.K] != "" {
			name = column[t.K]
		}
		m[name] = t.V
	}
	return m
}

// What is added is read back: the type of each value and its bits, times in ms, and nulls where a
// series has no such tag. A tag key that is called like a column has another one.
func TestWriter(t *testing.T) {
	t.Parallel()
	values := []encoding.Value{
		encoding.IntValue(0), encoding.IntValue(1<<53 + 1), encoding.IntValue(-1<<53 - 1),
		encoding.IntValue(math.MaxInt64), encoding.IntValue(math.MinInt64), encoding.FloatValue(0.1),
		encoding.FloatValue(math.NaN()), encoding.FloatValue(math.Inf(1)), encoding.FloatValue(math.Inf(-1)),
		encoding.FloatValue(math.Copysign(0, -1)), encoding.FloatValue(5e-324),
		encoding.FloatValue(math.MaxFloat64),
	}
	all := []struct {
		metric string
		tags   []write.Tag
	}{
		{"cpu", tags("host", "web01", "dc", "lga")},
		{"cpu", tags("host", "web02")},
		{"odd metric é", tags("value", "v", "tag_value", "w", "a.b", "x=y")},
		{"none", nil},
		{"cpu", tags("query", "q", "dc", "lga")},
	}
	named := map[string]string{"value": "tag_tag_value", "query": "tag_query"}

	var out bytes.Buffer
	w := pointfile.New(&out,
		batch.ResultColumns{TagKeys: []string{"a.b", "dc", "host", "query", "tag_value", "value"}})
	var want []pointfiletest.Row
	for i, s := range all {
		var points encoding.Points
		for j, v := range values {
			at := int64(1356998400000 + 1000*j + i) // seconds, and others
			points.Append(at, v)
			whole := "null"
			if !v.Float {
				whole = fmt.Sprint(int64(v.Bits))
			}
			want = append(want, pointfiletest.Row{
				Texts: texts(s.metric, s.tags, named), Time: at, Bits: math.Float64bits(v.Double()), Int: whole,
			})
		}
		if err := w.Add(pointfile.Series{Metric: s.metric, Tags: s.tags}, points); err != nil {
			t.Fatal(err)
		}
		points.Reset() // it was copied
		points.Append(0, encoding.Value{})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	columns, got, groups := pointfiletest.Read(t, out.Bytes())
	if diff := cmp.Diff([]string{
		"metric BYTE_ARRAY String 0", "a.b BYTE_ARRAY String 1", "dc BYTE_ARRAY String 1", "host BYTE_ARRAY String 1",
		"tag_query BYTE_ARRAY String 1", "tag_value BYTE_ARRAY String 1", "tag_tag_value BYTE_ARRAY String 1",
		"timestamp INT64 Timestamp(isAdjustedToUTC=true, timeUnit=milliseconds, is_from_converted_type=false, " +
			"force_set_converted_type=false) 0",
		"value DOUBLE None 1", "value_int INT64 None 1",
	}, columns); diff != "" {
		t.Errorf("columns: %s", diff)
	}
	if diff := cmp.Diff(want, got); diff != "" || groups != 1 {
		t.Errorf("%d groups: %s", groups, diff)
	}
}

// A NaN is a null where the fill policy says so and NaN elsewhere, and the rows say to which sub-query they are the
// answer, in a file that has this column.
func TestWriter_answer(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := pointfile.New(&out, batch.ResultColumns{Query: true})
	var points encoding.Points
	for i, v := range []encoding.Value{
		encoding.FloatValue(math.NaN()), encoding.FloatValue(0.5), encoding.FloatValue(math.NaN()),
		encoding.IntValue(7),
	} {
		points.Append(int64(i), v)
	}
	for i, nulls := range []bool{true, false, true} {
		if err := w.Add(pointfile.Series{Metric: "m", Query: i, NaNIsNull: nulls}, points); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	columns, rows, _ := pointfiletest.Read(t, out.Bytes())
	if last := columns[len(columns)-1]; last != "query INT32 None 0" {
		t.Errorf("the last column is %q, want query", last)
	}
	var got []string
	for _, r := range rows {
		value := fmt.Sprint(math.Float64frombits(r.Bits))
		if r.Null {
			value = "null"
		}
		got = append(got, fmt.Sprint(r.Query, " ", r.Time, " ", value, " ", r.Int))
	}
	if diff := cmp.Diff([]string{
		"0 0 null null", "0 1 0.5 null", "0 2 null null", "0 3 7 7",
		"1 0 NaN null", "1 1 0.5 null", "1 2 NaN null", "1 3 7 7",
		"2 0 null null", "2 1 0.5 null", "2 2 null null", "2 3 7 7",
	}, got); diff != "" {
		t.Error(diff)
	}
}

// Rows come back in their order from more than one group, also if a row of the table is cut in two. Names of very many
// series make a group shorter. Without points there are columns and no row.
func TestWriter_groups(t *testing.T) {
	t.Parallel()
	f := func(lines, each, wantGroups int, value string) {
		t.Helper()
		var out bytes.Buffer
		w := pointfile.New(&out, hosts)
		before := w.Bytes()
		for i := range lines {
			var points encoding.Points
			for j := range each {
				points.Append(int64(j), encoding.IntValue(int64(i)))
			}
			if err := w.Add(series(tags("host", fmt.Sprint(value, i))), points); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		columns, rows, groups := pointfiletest.Read(t, out.Bytes())
		if len(columns) != 5 || len(rows) != lines*each || groups != wantGroups {
			t.Fatalf("%d columns, %d rows in %d groups; want 5, %d in %d",
				len(columns), len(rows), groups, lines*each, wantGroups)
		}
		for n, r := range rows {
			i, j := n/each, n%each
			if r.Texts["host"] != fmt.Sprint(value, i) || r.Time != int64(j) || r.Int != fmt.Sprint(i) {
				t.Fatalf("row %d: %+v, want point %d of series %d", n, r, j, i)
			}
		}
		if grown := w.Bytes() > before; grown != (groups > 0) {
			t.Errorf("%d groups: %d bytes, %d without a point", groups, w.Bytes(), before)
		}
	}
	f(0, 1, 0, "")
	f(1, groupRows, 1, "")
	f(81, 3600, 3, "")
	f(1000, 1, 2, strings.Repeat("x", 10000))
}

// A series with a tag key that has no column is refused, and one without points is not looked at.
func TestWriter_newKey(t *testing.T) {
	t.Parallel()
	w := pointfile.New(&bytes.Buffer{}, hosts)
	if err := w.Add(series(tags("dc", "lga")), encoding.Points{}); err != nil {
		t.Errorf("without points: %v, want no error", err)
	}
	var points encoding.Points
	points.Append(1, encoding.IntValue(1))
	if err := w.Add(series(tags("host", "a", "dc", "lga")), points); err == nil ||
		!strings.Contains(err.Error(), `"dc" is new`) {
		t.Errorf("got %v, want an error about dc", err)
	}
}

// failing takes so many bytes.
type failing struct{ left int }

var errFull = errors.New("full")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// Wherever writing fails, the error comes out, and nothing panics.
func TestWriter_fails(t *testing.T) {
	t.Parallel()
	write := func(out *failing) error {
		w := pointfile.New(out, hosts)
		var points encoding.Points
		for j := range groupRows / 8 {
			points.Append(int64(j)<<20, encoding.FloatValue(math.Sqrt(float64(j))))
		}
		for range 9 {
			if err := w.Add(series(tags("host", "a")), points); err != nil {
				return err
			}
		}
		return w.Close()
	}
	whole := &failing{left: 1 << 30}
	if err := write(whole); err != nil {
		t.Fatal(err)
	}
	size := 1<<30 - whole.left
	for _, n := range []int{0, 3, 4, 100, size / 4, size / 2, size - 500, size - 8, size - 1} {
		if err := write(&failing{left: n}); !errors.Is(err, errFull) {
			t.Errorf("after %d of %d bytes: got %v, want %v", n, size, err, errFull)
		}
	}
}
