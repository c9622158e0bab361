package encoding

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The files of testdata/rows hold every cell that OpenTSDB 2.4.1 wrote to its tables in three
// set-ups. Only OpenTSDB's cells belong there: Downpour never rewrites them.
var recordedFiles = []struct {
	name   string
	schema Schema
}{
	{"plain", DefaultSchema()},
	{"appends", DefaultSchema()},
	{"salted_wide_uids_compacted",
		Schema{SaltWidth: 1, SaltBuckets: 4, MetricWidth: 4, TagKWidth: 2, TagVWidth: 4, MaxTags: 8}},
}

func readRows(t testing.TB, name string) (cells []Cell) {
	t.Helper()
	f, err := os.Open("testdata/rows/" + name + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		_, c, err := ParseDumpLine(lines.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		cells = append(cells, c)
	}
	return cells
}

func TestRecordedCells_encodeBackToTheSameBytes(t *testing.T) {
	for _, file := range recordedFiles {
		t.Run(file.name, func(t *testing.T) {
			seen := map[string]int{}
			for _, c := range readRows(t, file.name) {
				kind, again := reencode(t, file.schema, c)
				seen[kind]++
				if diff := cmp.Diff(c, again); diff != "" {
					t.Errorf("%s cell\n%s(-recorded +encoded):\n%s", kind,
						file.schema.Describe(nil, KindOf(c.Family, c.Qualifier), c), diff)
				}
			}
			t.Logf("cells by kind: %v", seen)
			for _, kind := range []string{"points", "mapping", "counter", "UIDMeta"} {
				if seen[kind] == 0 {
					t.Errorf("no %s cell in %s", kind, file.name)
				}
			}
		})
	}
}

// reencode decodes a cell, encodes what it found, and names the cell's kind.
func reencode(t *testing.T, s Schema, c Cell) (kind string, again Cell) {
	t.Helper()
	if c.Family == FamilyData {
		return reencodeData(t, s, c)
	}
	if isMetaQualifier(c.Qualifier) {
		return reencodeMeta(t, s, c)
	}
	_, meta, ok := ParseUIDKind(c.Qualifier)
	switch {
	case !ok:
		t.Fatalf("unknown qualifier %q", c.Qualifier)
	case meta:
		m, err := ParseUIDMeta(c.Value)
		if err != nil || m.Type == "" || m.Created == 0 {
			t.Errorf("UIDMeta %s is read as %+v, %v, want a type and a creation time", c.Value, m, err)
		}
		return "UIDMeta", c
	case bytes.Equal(c.Row, CounterRow):
		n, err := ParseCounter(c.Value)
		if err != nil || n == 0 {
			t.Errorf("counter % X is read as %d, %v, want a number above 0", c.Value, n, err)
		}
		return "counter", Cell{FamilyID, CounterRow, c.Qualifier, AppendCounter(nil, n)}
	}
	return "mapping", reencodeMapping(t, s, c)
}

func reencodeMapping(t *testing.T, s Schema, c Cell) Cell {
	m, err := s.ParseUIDMapping(c)
	if err != nil {
		t.Fatal(err)
	}
	if m.UID, err = AppendUID(nil, UIDNumber(m.UID), s.UIDWidth(m.Kind)); err != nil {
		t.Fatal(err)
	}
	again, err := m.Forward()
	if c.Family == FamilyName {
		again, err = m.Reverse()
	}
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func reencodeMeta(t *testing.T, s Schema, c Cell) (string, Cell) {
	row, err := s.ParseTSUID(UID(c.Row).String())
	if err != nil {
		t.Error(err)
	}
	again := Cell{FamilyName, row, c.Qualifier, c.Value}
	if string(c.Qualifier) == TSMetaQualifier {
		m, err := ParseTSMeta(c.Value)
		// Max is NaN in every recorded one.
		if err != nil || m.TSUID != UID(c.Row).String() || m.Max == m.Max {
			t.Errorf("TSMeta %s is read as %+v, %v, want the TSUID of its row and NaN as Max", c.Value, m, err)
		}
		return "TSMeta", again
	}
	n, err := ParseCounter(c.Value)
	if err != nil {
		t.Error(err)
	}
	again.Value = AppendCounter(nil, n)
	return "ts_ctr", again
}

func reencodeData(t *testing.T, s Schema, c Cell) (string, Cell) {
	key, err := s.ParseRowKey(c.Row)
	if err != nil {
		t.Fatal(err)
	}
	again := Cell{Family: FamilyData, Row: s.AppendRowKey(nil, key.Metric, key.BaseTime, key.Tags)}
	switch {
	case c.Qualifier[0] == PrefixAnnotation && len(c.Qualifier)%2 == 1:
		a, err := ParseAnnotation(c.Value)
		if err != nil {
			t.Fatal(err)
		}
		if again.Row, err = s.AppendAnnotationKey(nil, nil, a.StartTime); err != nil {
			t.Fatal(err)
		}
		again.Qualifier, again.Value = AppendAnnotationQualifier(nil, a.StartTime), AppendAnnotation(nil, a)
		return "annotation", again
	case bytes.Equal(c.Qualifier, AppendColumn):
		again.Qualifier = AppendColumn
		for rest := c.Value; len(rest) > 0; {
			var q Qualifier
			var v []byte
			q, v, rest = nextEntry(t, rest)
			again.Value = AppendEntry(again.Value, q, v)
		}
	default:
		again.Qualifier, again.Value = reencodePoints(t, c)
	}
	return "points", again
}

// nextEntry decodes an entry of an append column and encodes its value again.
func nextEntry(t *testing.T, b []byte) (q Qualifier, value, rest []byte) {
	q, rest, err := ParseQualifier(b)
	if err != nil {
		t.Fatal(err)
	}
	return q, reencodeValue(t, q, rest[:q.Width]), rest[q.Width:]
}

func reencodeValue(t *testing.T, q Qualifier, b []byte) []byte {
	v, err := ParseValue(q, b)
	if err != nil {
		t.Fatal(err)
	}
	if v.Float { // on 8 bytes, because every recorded point was put over HTTP
		return AppendDouble(nil, v.Double())
	}
	return AppendInt(nil, v.Int())
}

func reencodePoints(t *testing.T, c Cell) (qualifier, value []byte) {
	var b CellBuilder
	rest := c.Value
	for left := c.Qualifier; len(left) > 0; {
		q, more, err := ParseQualifier(left)
		if err != nil {
			t.Fatal(err)
		}
		b.Add(q, reencodeValue(t, q, rest[:q.Width]))
		left, rest = more, rest[q.Width:]
	}
	return b.Cell()
}

// putPoint is a point as testdata/rows/points.json has it: what a client sent.
type putPoint struct {
	Metric    string
	Timestamp int64
	Value     json.Number
	Tags      map[string]string
}

func (p putPoint) ms() int64 {
	if p.Timestamp > 1<<32 {
		return p.Timestamp
	}
	return p.Timestamp * 1000
}

// value follows the spelling, as the put path does: 1 is an integer, 1.0 a float.
func (p putPoint) value(t *testing.T) Value {
	if !strings.ContainsAny(p.Value.String(), ".eE") {
		n, err := p.Value.Int64()
		if err != nil {
			t.Fatal(err)
		}
		return IntValue(n)
	}
	f, err := p.Value.Float64()
	if err != nil {
		t.Fatal(err)
	}
	return FloatValue(f)
}

// entry is the point as it is stored.
func (p putPoint) entry(t *testing.T) (q Qualifier, value []byte) {
	v := p.value(t)
	if value = AppendInt(nil, v.Int()); v.Float {
		value = AppendDouble(nil, v.Double())
	}
	offset := int32(p.ms() - int64(KeyTime(Hour(p.ms()/1000)))*1000)
	return Qualifier{OffsetMS: offset, Milli: p.Timestamp > 1<<32, Float: v.Float, Width: len(value)}, value
}

// rowKey looks the point's names up among the recorded UIDs.
func (p putPoint) rowKey(t *testing.T, s Schema, uids map[UIDKind]map[string]UID) string {
	var pairs []TagPair
	for k, v := range p.Tags {
		pairs = append(pairs, TagPair{uids[UIDTagK][k], uids[UIDTagV][v]})
	}
	return string(s.AppendRowKey(nil, uids[UIDMetric][p.Metric], KeyTime(Hour(p.ms()/1000)), s.AppendTags(nil, pairs)))
}

func readUIDs(t *testing.T, s Schema, cells []Cell) map[UIDKind]map[string]UID {
	uids := map[UIDKind]map[string]UID{UIDMetric: {}, UIDTagK: {}, UIDTagV: {}}
	for _, c := range cells {
		if c.Family != FamilyID || bytes.Equal(c.Row, CounterRow) {
			continue
		}
		m, err := s.ParseUIDMapping(c)
		if err != nil {
			t.Fatal(err)
		}
		uids[m.Kind][m.Name] = m.UID
	}
	return uids
}

func readPut(t *testing.T) (points []putPoint) {
	text, err := os.ReadFile("testdata/rows/points.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &points); err != nil {
		t.Fatal(err)
	}
	return points
}

func TestRecordedRows_areThePointsPut(t *testing.T) {
	put := readPut(t)
	for _, file := range recordedFiles[1:] {
		t.Run(file.name, func(t *testing.T) {
			cells := readRows(t, file.name)
			uids := readUIDs(t, file.schema, cells)
			want := map[string]*Points{}
			wantCells := map[string][]Cell{}
			for _, p := range put {
				key := p.rowKey(t, file.schema, uids)
				if want[key] == nil {
					want[key] = new(Points)
				}
				want[key].Append(p.ms(), p.value(t))
				q, v := p.entry(t)
				wantCells[key] = append(wantCells[key], Cell{Qualifier: AppendQualifier(nil, q), Value: v})
			}
			if diff := cmp.Diff(want, decodeRows(t, file.schema, cells)); diff != "" {
				t.Errorf("points (-put +decoded):\n%s", diff)
			}
			compareStored(t, cells, wantCells)
		})
	}
}

func decodeRows(t *testing.T, s Schema, cells []Cell) map[string]*Points {
	var d RowDecoder
	rows := map[string]*Points{}
	for i := 0; i < len(cells) && cells[i].Family == FamilyData; {
		row := cells[i].Row
		key, err := s.ParseRowKey(row)
		if err != nil {
			t.Fatal(err)
		}
		d.Reset(key.BaseTime)
		for ; i < len(cells) && bytes.Equal(cells[i].Row, row); i++ {
			if err := d.Add(cells[i].Qualifier, cells[i].Value, 1); err != nil {
				t.Fatalf("row % X: %v", row, err)
			}
		}
		rows[string(row)] = new(Points)
		if err := d.Finish(rows[string(row)]); err != nil {
			t.Fatalf("row % X: %v", row, err)
		}
	}
	return rows
}

// compareStored builds each row's cells from the points put, in the form the row
// was recorded in, and compares bytes.
func compareStored(t *testing.T, cells []Cell, put map[string][]Cell) {
	rows := map[string][]Cell{}
	for _, c := range cells {
		if c.Family == FamilyData {
			rows[string(c.Row)] = append(rows[string(c.Row)], c)
		}
	}
	for row, stored := range rows {
		points := put[row]
		want := points
		switch {
		case bytes.Equal(stored[0].Qualifier, AppendColumn):
			want = []Cell{{Qualifier: AppendColumn}}
			for _, p := range points {
				want[0].Value = append(append(want[0].Value, p.Qualifier...), p.Value...)
			}
		case len(stored) == 1:
			want = []Cell{compact(t, points)}
		}
		for i := range stored {
			stored[i].Row, stored[i].Family = nil, ""
		}
		if diff := cmp.Diff(stored, want); diff != "" {
			t.Errorf("row % X (-recorded +built):\n%s", row, diff)
		}
	}
}

func compact(t *testing.T, points []Cell) (c Cell) {
	var b CellBuilder
	slices.SortFunc(points, func(x, y Cell) int { return int(offsetOf(t, x) - offsetOf(t, y)) })
	for _, p := range points {
		q, _, err := ParseQualifier(p.Qualifier)
		if err != nil {
			t.Fatal(err)
		}
		b.Add(q, p.Value)
	}
	c.Qualifier, c.Value = b.Cell()
	return c
}

func offsetOf(t *testing.T, c Cell) int32 {
	q, _, err := ParseQualifier(c.Qualifier)
	if err != nil {
		t.Fatal(err)
	}
	return q.OffsetMS
}

// The rows of plain.jsonl hold the points that were put by single HTTP requests, which are listed
// here and not in points.json.
func TestRecordedRows_plainPoints(t *testing.T) {
	s := DefaultSchema()
	cells := readRows(t, "plain")
	uids := readUIDs(t, s, cells)
	want := map[string]*Points{}
	put := func(p putPoint) {
		key := p.rowKey(t, s, uids)
		if want[key] == nil {
			want[key] = new(Points)
		}
		want[key].Append(p.ms(), p.value(t))
	}
	web01, web02 := map[string]string{"host": "web01", "dc": "lga"}, map[string]string{"host": "web02", "dc": "lga"}
	put(putPoint{"sys.cpu.nice", 1356998400, "18", web01})
	put(putPoint{"sys.cpu.nice", 1356998460, "19.5", web01})
	put(putPoint{"sys.cpu.nice", 1356998460, "9", web02})
	put(putPoint{"sys.cpu.nice", 1356998580, "7", web01})
	for i, value := range []json.Number{"0.0", "1.5", "3.0", "4.5", "6.0", "7.5", "9.0", "10.5", "12.0", "13.5",
		"15.0", "16.5"} {
		host := []string{"web00", "web01", "web02"}[i%3]
		put(putPoint{"sys.cpu.sys", 1356998400250 + int64(i)*1000, value,
			map[string]string{"host": host, "dc": "sjc", "os": "linux"}})
	}
	got := decodeRows(t, s, cells)
	for key, p := range got {
		if p.Len() == 0 { // the row of the global annotation
			delete(got, key)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("points (-put +decoded):\n%s", diff)
	}
}
