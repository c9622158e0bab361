package batch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/google/go-cmp/cmp"
)

// outputRows returns the rows of a stream as text. The first row has the names of the columns,
// each with its alias.
func outputRows(t *testing.T, stream []byte) (rows []string) {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	var names []string
	for _, f := range r.Schema().Fields() {
		alias, _ := f.Metadata.GetValue(AliasKey)
		names = append(names, f.Name+alias)
	}
	rows = append(rows, strings.Join(names, " "))
	for r.Next() {
		rec := r.Record()
		for i := range int(rec.NumRows()) {
			var cells []string
			for _, c := range rec.Columns() {
				cells = append(cells, c.ValueStr(i))
			}
			rows = append(rows, strings.Join(cells, " "))
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

func writeOutputs(t *testing.T, outputs []Output, series []OutputSeries) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewOutputWriter(&b, outputs, series, ResultOptions{})
	for i := range series {
		if err := w.Write(&series[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(b.Bytes(), endMark) {
		t.Errorf("the stream ends with %X, want the end mark", b.Bytes()[max(0, b.Len()-8):])
	}
	return b.Bytes()
}

// A row has the values of all outputs at its time, and null where an output has no value then. A
// tag key that equals an output's id gets a column of another name, here tag_e. The keys that are
// aggregated away are metadata of a batch.
func TestOutputWriter(t *testing.T) {
	stream := writeOutputs(t, []Output{{"a", ""}, {"e", "=both"}}, []OutputSeries{
		{
			TagKeys:   []string{"host", "e"},
			TagValues: []string{"web01", "x"},
			Columns: []OutputColumn{{[]int64{1000, 2000}, []float64{1, 2}},
				{[]int64{2000, 3000}, []float64{math.NaN(), 4}}},
		},
		{
			TagKeys:       []string{"host"},
			TagValues:     []string{"web02"},
			AggregateTags: []string{"dc"},
			Columns:       []OutputColumn{{}, {[]int64{1000}, []float64{5}}},
		},
	})
	for _, list := range []string{`[]`, `["dc"]`} {
		if !bytes.Contains(stream, []byte(list)) {
			t.Errorf("no batch has the aggregated tags %s", list)
		}
	}
	got := outputRows(t, stream)
	want := []string{
		"dc tag_e host timestamp a e=both",
		"(null) x web01 1970-01-01 00:00:01Z 1 (null)",
		"(null) x web01 1970-01-01 00:00:02Z 2 NaN",
		"(null) x web01 1970-01-01 00:00:03Z (null) 4",
		"(null) (null) web02 1970-01-01 00:00:01Z (null) 5",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// No row is lost or changed where one batch ends and the next begins. Many outputs make batches
// of few rows.
func TestOutputWriter_batches(t *testing.T) {
	outputs := make([]Output, 100)
	series := OutputSeries{Columns: make([]OutputColumn, len(outputs))}
	const rows = 3000 // several batches: with so many outputs a batch has some 1024 rows
	for i := range outputs {
		outputs[i].ID = fmt.Sprint("o", i)
		for k := range rows {
			if (k+i)%3 > 0 {
				series.Columns[i].Time = append(series.Columns[i].Time, int64(k))
				series.Columns[i].Value = append(series.Columns[i].Value, float64(k))
			}
		}
	}
	stream := writeOutputs(t, outputs, []OutputSeries{series})
	if n := bytes.Count(stream, []byte("\xff\xff\xff\xff")); n > 8 { // each message begins so
		t.Errorf("%d messages, want a schema, three batches and an end", n)
	}
	got := outputRows(t, stream)
	if len(got) != rows+1 || !strings.HasSuffix(got[rows], fmt.Sprint(" ", rows-1)) {
		t.Errorf("%d rows, the last is %s, want one for each time, the last one included", len(got)-1, got[len(got)-1])
	}
	for k, row := range got[1:] {
		for i, cell := range strings.Fields(row)[2:] { // the first two words are the time
			if want := map[bool]string{true: fmt.Sprint(k), false: "(null)"}[(k+i)%3 > 0]; cell != want {
				t.Fatalf("row %d, output %d: %s, want %s", k, i, cell, want)
			}
		}
	}
}

// An output without an alias has no metadata, and a batch without rows is not written.
func TestOutputWriter_little(t *testing.T) {
	s := outputSchema(nil, []Output{{"a", ""}, {"b", "c"}}, ResultOptions{})
	if a, b := s.Field(1).Metadata, s.Field(2).Metadata; a.Len() != 0 || b.Len() != 1 {
		t.Errorf("metadata of outputs without and with an alias: %v, %v, want none and one", a, b)
	}
	if n := bytes.Count(writeOutputs(t, []Output{{"a", ""}}, nil), []byte("\xff\xff\xff\xff")); n != 2 {
		t.Errorf("%d messages, want a schema and an end", n)
	}
}

// broken is a client that has left.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// A series whose batch cannot be sent is an error, where the batch is full and where the next one has
// other aggregated tags.
func TestOutputWriter_broken(t *testing.T) {
	long := OutputColumn{Time: make([]int64, 1<<17), Value: make([]float64, 1<<17)}
	for i := range long.Time {
		long.Time[i] = int64(i)
	}
	short := OutputColumn{Time: []int64{1}, Value: []float64{1}}
	for what, series := range map[string][]OutputSeries{
		"a full batch": {{Columns: []OutputColumn{long}}},
		"other tags": {
			{Columns: []OutputColumn{short}},
			{AggregateTags: []string{"host"}, Columns: []OutputColumn{short}},
		},
	} {
		w := NewOutputWriter(broken{}, []Output{{ID: "a"}}, series, ResultOptions{})
		var err error
		for i := range series {
			err = w.Write(&series[i])
		}
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: got %v, want %v", what, err, io.ErrClosedPipe)
		}
	}
}
