package stage

import (
	"testing"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/operatortest"
)

// The seam is the last full hour that was over for settledAfter by now and by the end of the query.
func TestSeam(t *testing.T) {
	p := operatortest.Plan(encoding.DefaultSchema(), operatortest.UID(1), alignedBase, alignedBase+6*3600)
	p = p.Untrimmed()
	const minute = int64(60_000)
	at := func(hour int64) int64 { return (alignedBase + hour*3600) * 1000 }
	for _, c := range []struct {
		end, now int64
		want     int64 // hours before the seam; 0 for none
	}{
		{at(5) + 30*minute, at(9), 5},
		{at(5) + 9*minute, at(9), 4}, // late points of the hour before may still come
		{at(5) + 10*minute, at(9), 5},
		{at(6) + 30*minute, at(9), 5},          // an hour is left to be read
		{at(6) - 1, at(3) + 20*minute, 3},      // some of the hours are still to come
		{at(2) + 20*minute, at(9), 2},          // the shortest
		{at(1) + 59*minute, at(9), 0},          // not worth it
		{at(5) + 30*minute, at(0) - minute, 0}, // nothing was written yet
	} {
		older, newer, ok := splitSettled(&p, c.end, c.now)
		if ok != (c.want > 0) ||
			ok && (older.From != alignedBase || older.To != alignedBase+c.want*3600 || newer.From != older.To ||
				newer.To != p.To) {
			t.Errorf("end %d, now %d: seam at %d, %v, want %d hours before it", c.end, c.now, older.To, ok, c.want)
		}
	}

	p.Downsample = &scanplan.Downsample{Interval: 7_200_000, Function: "avg"}
	if _, _, ok := splitSettled(&p, at(5)+30*minute, at(9)); ok {
		t.Error("a seam was found among buckets of two hours")
	}
}
