package differential

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"downpour/encoding"
)

// schemas are the layouts that the tests use.
var schemas = []encoding.Schema{
	encoding.DefaultSchema(),
	{SaltWidth: 1, SaltBuckets: 4, MetricWidth: 4, TagKWidth: 2, TagVWidth: 4, MaxTags: 8},
}

// A seed gives the same data each time, and another seed other data.
func TestGenerate_repeats(t *testing.T) {
	for _, schema := range schemas {
		a, b, other := Generate(7, schema), Generate(7, schema), Generate(8, schema)
		if !reflect.DeepEqual(a, b) {
			t.Error("one seed gave two data sets")
		}
		if reflect.DeepEqual(a.Rows, other.Rows) {
			t.Error("two seeds gave the same rows")
		}
	}
}

// Every series has at least one point, whatever the seed, so that queries can draw a time from it.
func TestGenerate_noSeriesIsEmpty(t *testing.T) {
	for seed := range uint64(40) {
		for _, schema := range schemas {
			for _, s := range Generate(seed, schema).Series {
				if len(s.Points) == 0 {
					t.Fatalf("seed %d, salt width %d: %s %v has no points", seed, schema.SaltWidth, s.Metric, s.Tags)
				}
			}
		}
	}
}

// The cells of all forms hold the points of the series: every point of most metrics, one point of
// each time of the metric with duplicates.
func TestGenerate_rowsHoldPoints(t *testing.T) {
	for seed := range uint64(3) {
		for _, schema := range schemas {
			d := Generate(seed, schema)
			got := decode(t, d)
			for i := range d.Series {
				s := &d.Series[i]
				want := valuesByTime(s.Points)
				id := fmt.Sprintf("%s under salt %d", s.TSUID, s.salt)
				if len(got[id]) != len(want) {
					t.Fatalf("seed %d, %s: %d times in the rows, want %d", seed, id, len(got[id]), len(want))
				}
				for ms, v := range got[id] {
					if !slices.Contains(want[ms], v) {
						t.Fatalf("seed %d, %s at %d: %s in the rows, want one of %v", seed, id, ms, v, want[ms])
					}
				}
			}
		}
	}
}

func valuesByTime(points []Point) map[int64][]string {
	all := map[int64][]string{}
	for _, p := range points {
		all[p.MS] = append(all[p.MS], p.value().String())
	}
	return all
}

// decode reads all rows, and returns each span's values by time.
func decode(t *testing.T, d *Data) map[string]map[int64]string {
	t.Helper()
	all := map[string]map[int64]string{}
	for start := 0; start < len(d.Rows); {
		end := start
		for end < len(d.Rows) && string(d.Rows[end].Row) == string(d.Rows[start].Row) {
			end++
		}
		row := d.Rows[start:end]
		start = end
		key, err := d.Schema.ParseRowKey(row[0].Row)
		if err != nil {
			t.Fatal(err)
		}
		if encoding.UIDNumber(key.Metric) == 0 {
			continue // global annotations
		}
		points := decodeRow(t, d, key, row)
		id := fmt.Sprintf("%X under salt %d", d.Schema.AppendTSUID(nil, row[0].Row), encoding.UIDNumber(key.Salt))
		if all[id] == nil {
			all[id] = map[int64]string{}
		}
		for i := range points.Len() {
			ms, v := points.At(i)
			all[id][ms] = v.String()
		}
	}
	return all
}

// decodeRow decodes one row. Duplicates are an error unless the metric is the one that has them.
func decodeRow(t *testing.T, d *Data, key encoding.RowKey, row []Cell) (points encoding.Points) {
	t.Helper()
	duplicates := string(key.Metric) == string(d.names.uids[encoding.UIDMetric][Duplicated])
	decoder := encoding.RowDecoder{FixDuplicates: duplicates}
	decoder.Reset(key.BaseTime)
	written := map[int64]bool{}
	for _, c := range row {
		if written[c.Timestamp] && c.Qualifier[0] != encoding.PrefixAnnotation {
			t.Fatalf("row %x: two cells written at %d", c.Row, c.Timestamp)
		}
		written[c.Timestamp] = true
		if len(c.Qualifier)%2 == 0 {
			ascending(t, c)
		}
		if err := decoder.Add(c.Qualifier, c.Value, c.Timestamp); err != nil {
			t.Fatalf("row %x, qualifier %x: %v", c.Row, c.Qualifier, err)
		}
	}
	if err := decoder.Finish(&points); err != nil {
		t.Fatalf("row %x: %v", row[0].Row, err)
	}
	return points
}

// ascending checks that a compacted cell has one point a time, in order, as
// OpenTSDB's compaction writes it.
func ascending(t *testing.T, c Cell) {
	t.Helper()
	last := int32(-1)
	for rest := c.Qualifier; len(rest) > 0; {
		q, next, err := encoding.ParseQualifier(rest)
		if err != nil || q.OffsetMS <= last {
			t.Fatalf("row %x, qualifier %x: offset %d after %d, error %v", c.Row, c.Qualifier, q.OffsetMS, last, err)
		}
		last, rest = q.OffsetMS, next
	}
}

// A data set has cells of every form and width, and a series under a salt that is not its own.
func TestGenerate_covers(t *testing.T) {
	d := Generate(1, schemas[1])
	seen := map[string]int{}
	for _, c := range d.Rows {
		seen[form(c)]++
	}
	for _, want := range []string{
		"integer on 1", "integer on 2", "integer on 4", "integer on 8", "float on 4", "float on 8", "4 for 8",
		"milliseconds", "compacted", "compacted mixed", "appended", "annotation",
	} {
		if seen[want] == 0 {
			t.Errorf("no cell is %s: %v", want, seen)
		}
	}
	foreign := 0
	for i := range d.Series {
		if s := &d.Series[i]; s.salt != d.Schema.Salt(d.names.uids[encoding.UIDMetric][s.Metric], s.tags) {
			foreign++
		}
	}
	if foreign == 0 {
		t.Error("no series lies under a salt that is not its own, want at least 1")
	}
}

// form names the kind of a cell. "4 for 8" is a float whose qualifier says 4 bytes but whose value
// has 8.
func form(c Cell) string {
	switch {
	case c.Qualifier[0] == encoding.PrefixAnnotation && len(c.Qualifier)%2 == 1:
		return "annotation"
	case string(c.Qualifier) == string(encoding.AppendColumn):
		return "appended"
	}
	q, rest, err := encoding.ParseQualifier(c.Qualifier)
	switch {
	case err != nil:
		return err.Error()
	case len(rest) > 0 && c.Value[len(c.Value)-1] == 1:
		return "compacted mixed"
	case len(rest) > 0:
		return "compacted"
	case q.Milli:
		return "milliseconds"
	case q.Float && q.Width == 4 && len(c.Value) == 8:
		return "4 for 8"
	case q.Float:
		return fmt.Sprintf("float on %d", q.Width)
	}
	return fmt.Sprintf("integer on %d", q.Width)
}
