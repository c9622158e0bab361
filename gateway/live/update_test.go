package live

import (
	"bytes"
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/ipc"

	"downpour/encoding"
)

func TestAppendValue(t *testing.T) {
	for _, tc := range []struct {
		v    encoding.Value
		want string
	}{
		{encoding.IntValue(1), "1"},
		{encoding.FloatValue(1), "1.0"},
		{encoding.FloatValue(math.Copysign(0, -1)), "-0.0"},
		{encoding.IntValue(math.MinInt64), "-9223372036854775808"},
		{encoding.FloatValue(0.1), "0.1"},
		{encoding.FloatValue(1e300), "1e+300"},
		{encoding.FloatValue(4.5e-9), "4.5e-09"},
		{encoding.FloatValue(math.NaN()), `"NaN"`},
		{encoding.FloatValue(math.Inf(-1)), `"-Infinity"`},
	} {
		if got := string(AppendValue(nil, tc.v, false)); got != tc.want {
			t.Errorf("%+v is %s, want %s", tc.v, got, tc.want)
		}
	}
}

// example is a snapshot and the delta after it, as the contract shows them.
func example() (snapshot, change *Update) {
	var s state
	first := Result{
		Metric:        `a"b`,
		Tags:          map[string]string{"host": "x", "cpu": "0"},
		AggregateTags: []string{"dc"},
		Key:           "k",
	}
	first.Points = encoding.Points{Time: []int64{1000, 2500, 2700}, Bits: []uint64{1, 2, 3}, Float: make([]bool, 3)}
	before, _ := s.advance(Answer{Results: []Result{first}}, true)
	tr := newTrack("e", before)
	snapshot = &Update{Kind: KindSnapshot, Epoch: "e", Seq: 1, groups: tr.list(before), rows: 7, finalBefore: 1}

	second := Result{QueryIndex: 1, Metric: "n"}
	second.Points.Append(3000, encoding.FloatValue(math.NaN()))
	second.NaNIsNull = true
	first.Points = encoding.Points{Time: []int64{2500}, Bits: []uint64{math.Float64bits(2)}, Float: []bool{true}}
	after, ch := before.advance(Answer{Results: []Result{first, second}, FinalBefore: 1999}, true)
	tr.record(2, ch, after)
	return snapshot, &Update{Kind: KindDelta, Epoch: "e", Seq: 2, delta: tr.history[0]}
}

//fault:last-group-left-out-of-a-delta range d.upserts => range d.upserts[:max(0, len(d.upserts)-1)]
func TestJSONOfUpdates(t *testing.T) {
	snapshot, change := example()
	if got, want := text(snapshot),
		`,"epoch":"e","seq":1,"results":[{"queryIndex":0,"metric":"a\"b","tags":{"cpu":"0","host":"x"},`+
			`"aggregateTags":["dc"],"dps":[[1,1],[2,3]]}],"rows":7,"finalBefore":1}`; got != want {
		t.Errorf("snapshot\n%s, want\n%s", got, want)
	}
	if got, want := text(change),
		`,"epoch":"e","seq":2,"groups":[{"group":1,"queryIndex":1,"metric":"n","tags":{},"aggregateTags":[]}],`+
			`"removed":[],`+
			`"upserts":[{"group":0,"dps":[[2,2.0]]},{"group":1,"dps":[[3,null]]}],`+
			`"deletes":[{"group":0,"ts":[1]}],"finalBefore":1}`; got != want {
		t.Errorf("delta\n%s, want\n%s", got, want)
	}
	failed := NewError(&Error{Code: 400, Message: "no", Temporary: true})
	if got, want := text(failed), `,"error":{"code":400,"message":"no","temporary":true}}`; got != want {
		t.Errorf("error\n%s, want\n%s", got, want)
	}
	failed = NewError(&Error{Code: 400, Message: "no", Temporary: true, Suggestions: []string{"a\"b", "c"}})
	if got, want := text(failed),
		`,"error":{"code":400,"message":"no","temporary":true,"suggestions":["a\"b","c"]}}`; got != want {
		t.Errorf("error\n%s, want\n%s", got, want)
	}
}

func TestArrowOfUpdates(t *testing.T) {
	snapshot, change := example()
	header, frame, err := snapshot.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(header),
		`,"epoch":"e","seq":1,"binary":true,"results":[{"queryIndex":0,"metric":"a\"b","tags":{"cpu":"0",`+
			`"host":"x"},"aggregateTags":["dc"]}],"rows":7,"finalBefore":1}`; got != want {
		t.Errorf("header\n%s, want\n%s", got, want)
	}
	if n := rowsOf(t, frame); n != 2 {
		t.Errorf("snapshot has %d rows, want 2", n)
	}
	header, frame, err = change.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(header),
		`,"epoch":"e","seq":2,"binary":true,"groups":[{"group":1,"queryIndex":1,"metric":"n","tags":{},`+
			`"aggregateTags":[]}],"removed":[],"finalBefore":1}`; got != want {
		t.Errorf("header\n%s, want\n%s", got, want)
	}
	if n := rowsOf(t, frame); n != 3 {
		t.Errorf("delta has %d rows, want two upserts and a delete", n)
	}
}

func rowsOf(t *testing.T, frame []byte) int64 {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(frame))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	var n int64
	for r.Next() {
		n += r.Record().NumRows()
	}
	return n
}
