package scenario

import (
	"context"
	"fmt"
	"time"

	"downpour/bench"
	"downpour/encoding"
)

// bare is the floor that reads the rows of the data set and throws them away.
const bare = "bare scan"

// floors are run in turn with the questions, whose times they bound from below. They return the step of a data set, of
// figures whose names begin with prefix.
var floors = func() map[string]func(s *stage, prefix string) bench.Step {
	all := map[string]func(*stage, string) bench.Step{bare: bareScan, promEngine: promInMemory}
	for _, kind := range protectionKinds {
		all[javas(kind)] = javaScan(kind)
	}
	return all
}()

// javaScans are the floors of all protections.
var javaScans = []string{javas(plain), javas(authentication), javas(integrity), javas(privacy), javas(encrypted)}

// scanners is how many read side by side in the bare scan: more than one helps
// where a row has many cells.
var scanners = map[*dataset]int{compacted: 1, cells: 2}

// bareScan reads the rows of the data set and throws them away.
func bareScan(s *stage, prefix string) bench.Step {
	t := s.set
	floor := bench.Floor{
		Store: t.at.Store(), Schema: encoding.DefaultSchema(), Table: t.at.Tables.Data, Metric: t.metric,
		Scanners: scanners[t.dataset],
	}
	points := int64(t.data.Points())
	return bench.Step{
		Name: fmt.Sprintf("%sbare scan, scanners: %d", prefix, floor.Scanners),
		Work: points,
		Unit: "points",
		Run: bench.Timed(func(ctx context.Context, _ int) error {
			stats, err := floor.Scan(ctx, t.data.Start, t.data.End()-1)
			// In other forms a cell holds many points.
			if err == nil && t.dataset == cells && stats.Cells != points {
				return fmt.Errorf("%d cells, want %d", stats.Cells, points)
			}
			return err
		}),
	}
}

// javas is the name of the scan by HBase's own client over connections of a side's kind.
func javas(side string) string { return "HBase's client, " + side }

// javaScan reads the rows of the data set by HBase's own client.
func javaScan(side string) func(*stage, string) bench.Step {
	const what = "the same rows scanned by HBase's client, "
	return func(s *stage, _ string) bench.Step {
		t := s.set
		scan := func(ctx context.Context, _ int) (time.Duration, error) { return t.secured.javaScan(ctx, t, side) }
		return bench.Step{
			Name: what + reported(side),
			Of:   what + reported(plain),
			Work: int64(t.data.Points()),
			Unit: "points",
			Run:  scan,
		}
	}
}
