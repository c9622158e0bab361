package peer

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/bench/report"
)

// topText is what go tool pprof -top -unit=us writes.
const topText = `File: gateway
Type: cpu
Time: 2026-11-22 01:40:58 UTC
Duration: 4s, Total samples = 4.37s (109.20%)
Active filters:
   show=^downpour/
Showing nodes accounting for 3070000us, 70.25% of 4370000us total
Dropped 60 nodes (cum <= 21850us)
      flat  flat%   sum%        cum   cum%
  590000us 13.50% 13.50%   590000us 13.50%  downpour/encoding.(*RowDecoder).walkSeconds
         0     0% 13.50%  2210000us 50.57%  downpour/pushdown/operator.(*part).run
  140000us  3.20% 16.70%   150000us  3.43%  internal/poll.ignoringEINTRIO (inline)
`

func TestParseTop(t *testing.T) {
	read := func(flat string, to *report.Share) (err error) {
		to.Took, err = time.ParseDuration(flat)
		return err
	}
	got, err := parseTop(topText, read)
	want := []report.Share{
		{Name: "downpour/encoding.(*RowDecoder).walkSeconds", Took: 590 * time.Millisecond},
		{Name: "internal/poll.ignoringEINTRIO (inline)", Took: 140 * time.Millisecond},
	}
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for text, want := range map[string]string{
		"": "want a table", strings.Replace(topText, "590000us", "many", 1): `line "many 13.50%`,
	} {
		if _, err := parseTop(text, read); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
