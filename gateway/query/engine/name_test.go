package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/query"
)

// The annotations of a group that lie in the query are sorted by start, whichever span they belong
// to. Those with the same start keep the order of the spans.
func TestAnnotationsInside(t *testing.T) {
	const start = 1356998400
	var notes [][]byte
	for _, n := range []encoding.Annotation{
		{TSUID: "02", StartTime: start + 70},
		{TSUID: "02", StartTime: start + 20},
		{TSUID: "01", StartTime: start + 20},
		{TSUID: "01", StartTime: start - 1},
		{TSUID: "01", StartTime: (start + 30) * 1000},
		{TSUID: "01", StartTime: start + 101},
	} {
		notes = append(notes, encoding.AppendAnnotation(nil, n))
	}
	notes = append(notes, []byte("no JSON"))
	var got []string
	for _, text := range annotationsInside(notes, &query.Query{Start: start * 1000, End: (start + 100) * 1000}) {
		a, err := encoding.ParseAnnotation(text)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, a.TSUID+" "+encoding.IntValue(a.StartTime).String())
	}
	// Starts are compared as numbers, so that one in ms comes last.
	want := []string{"02 1356998420", "01 1356998420", "02 1356998470", "01 1356998430000"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
