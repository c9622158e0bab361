//go:build integration

package integration

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"downpour/integration/e2e"
)

// The real pyarrow, pandas and DuckDB read from an export as Parquet every point that was put, to
// the bit, from more than one row group; also where they leave out what the statistics of the file
// say is not wanted.
func TestNotebooks_parquet(t *testing.T) {
	t.Parallel()
	ctx := within(t, 5*time.Minute)
	ours := embedded(t, nil)
	points := slices.Concat(introduce(), dataset(12), oddities())
	put(ctx, t, ours.URL, points)
	var want []string
	for _, p := range points {
		want = append(want, row(0, p.Metric, p.Tags, fmt.Sprint(milliseconds(p)), number(t, string(p.Value), true)))
	}
	const series = 64
	putSeries(ctx, t, strings.TrimPrefix(ours.URL, "http://"), series)
	for i := range series {
		for at := range 6 * 360 {
			tags := map[string]string{"host": fmt.Sprintf("web%04d", i), "dc": fmt.Sprint("dc", i%4)}
			want = append(want, row(0, "rates", tags, fmt.Sprint(1000*(dataStart+10*at)),
				number(t, fmt.Sprintf("%d.%02d", (at*7+i)%100, at%100), true)))
		}
	}
	slices.Sort(want)

	file := filepath.Join(t.TempDir(), "points.parquet")
	status, out, err := e2e.Run(ctx, gatewayProgram, e2e.ProgramOptions{
		Args: []string{"export", "-gateway", ours.URL, "-format", "parquet", "-o", file, "-all", "1970/03/01"},
	})
	if said := fmt.Sprintf("%d points of", len(want)); err != nil || status != 0 || !strings.Contains(out, said) {
		t.Fatalf("exit status %d, %v, %s; want %q", status, err, out, said)
	}

	read := readings(t, must[[]byte](t)(e2e.Python(ctx, "integration/readers/parquet.py", file)))
	if len(read) != 5 {
		t.Errorf("%d readers, want 5", len(read))
	}
	for reader, answers := range read {
		var got []string
		for _, r := range answers[0] {
			got = append(got, r.text)
		}
		slices.Sort(got)
		if slices.Equal(got, want) {
			continue
		}
		for i, w := range want {
			if i >= len(got) || got[i] != w {
				t.Errorf("%s: %d points, want %d; the first that differs is %q, want %q", reader, len(got), len(want),
					got[min(i, len(got)):min(i+1, len(got))], w)
				break
			}
		}
	}
}
