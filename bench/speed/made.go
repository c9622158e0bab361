package speed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"downpour/bench"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/gateway/metadata/tables"
	"downpour/gateway/write"
	"downpour/integration/differential"
	"downpour/integration/e2e"
)

// rollupAuto measures rollups over compacted rows. A row of a point a minute is one cell there,
// and its average by the hour two, so the aim is that nothing is lost.
func rollupAuto(ctx context.Context, s *stage, g group) error {
	return madeRollups(ctx, s, g, madeRow{row: "rollup-auto", form: write.MultiPoint, rows: "compacted rows", times: 1})
}

// rollupAutoCells measures rollups over rows as puts leave them, a cell a point.
func rollupAutoCells(ctx context.Context, s *stage, g group) error {
	return madeRollups(ctx, s, g, madeRow{row: "rollup-auto-cells", form: write.Single, rows: "rows as puts leave them", times: 20})
}

// madeRow is a row of rollups that a gateway makes itself.
type madeRow struct {
	row   string
	form  write.Form
	rows  string  // what the report calls it
	times float64 // the aim
}

// madeRollups measures a query over many days that rollups answer which the gateway has made
// itself, beside one that reads raw rows, while the table is written to. Both have no result
// cache, and the first proves by timestamps.
func madeRollups(ctx context.Context, s *stage, g group, of madeRow) error {
	d := s.livingData(g, 0)
	if err := s.useWrittenAs(ctx, g, d, of.form, map[string]string{"DOWNPOUR_RESULT_CACHE": "off"}); err != nil {
		return err
	}
	t := s.set.tables
	s.set.rollups = differential.RollupTables(t.Data)
	all := tables.Names{Data: t.Data, UID: t.UID, Meta: t.Meta, Tree: t.Tree, Rollups: s.set.rollups}
	if err := tables.Create(ctx, s.store, tables.Specs(all, encoding.DefaultSchema(), "NONE")); err != nil {
		return err
	}
	file := filepath.Join(os.TempDir(), t.Data+"-made.json")
	if err := os.WriteFile(file, []byte(differential.RollupConfig(t.Data)), 0o600); err != nil {
		return err
	}
	defer os.Remove(file)
	made, err := s.another(ctx, map[string]string{"DOWNPOUR_RESULT_CACHE": "off", "DOWNPOUR_RESULT_CACHE_PROOF": "timestamps",
		"DOWNPOUR_ROLLUPS": "auto:" + file, "DOWNPOUR_ROLLUP_RATE": "off", "DOWNPOUR_TABLE_STATE": t.Data + "-state"})
	if err != nil {
		return err
	}

	made.Name = "rollups made" // beside the other gateway

	query := workload.Query{Start: d.Start, End: d.End() - 1, M: "sum:1h-avg:" + d.Metric()}
	return whileWriting(ctx, func(ctx context.Context) error { return s.keepWriting(ctx, d, nil) }, func(ctx context.Context) error {
		s.cfg.Progress.Sayf("making rollups")
		began := time.Now()
		if err := rollUp(ctx, made.URL, d); err != nil {
			return err
		}
		making := report.Figure{Name: of.row + ", rollups made", Work: int64(d.Points()), Unit: "points", Runs: []time.Duration{time.Since(began)}}
		s.cfg.Report.Figures = append(s.cfg.Report.Figures, making)
		s.aim(report.Aim{Row: of.row, Scale: g.scale, What: "rollups made of " + of.rows + ", while others are written", AtLeast: true, Unit: "points/s", Figure: making.Name,
			Got: single(making.Rate())})

		s.cfg.Progress.Sayf("waiting until they are proven")
		// Rows that were written to in the last 5.5 minutes are not proven by timestamps.
		within, cancel := context.WithTimeout(ctx, 2*provenAfter)
		defer cancel()
		err := e2e.Until(within, 20*time.Second, func(ctx context.Context) error {
			if err := rollUp(ctx, made.URL, d); err != nil {
				return err
			}
			answer, err := made.Ask(ctx, workload.Query{Path: query.String() + "&explain=true"})
			if err == nil && !bytes.Contains(answer, []byte(`"rollups":"table `+t.Data+"-1h ")) {
				err = fmt.Errorf("rollups are not read: %.1000s", answer)
			}
			return err
		})
		if err != nil {
			return err
		}

		what := fmt.Sprintf("sum:1h-avg of %d days of %d series, %s, from rollups that made themselves, while others are written", s.cfg.LivingDays, d.Hosts, of.rows)
		c := bench.PairConfig{A: s.set.ours, B: made, Rounds: s.cfg.Rounds, Unit: 3600, Seed: d.Seed, Prefix: of.row + ", ", Work: int64(d.Points()), Queries: []workload.Query{query}}
		steps, err := c.Steps(ctx)
		if err != nil {
			return err
		}
		figures, err := s.measure(ctx, made, steps, 1, c.Rounds)
		if err != nil {
			return err
		}
		s.aim(faster(of.row, g, what, of.times, figures[c.Name(query, made)], figures[c.Name(query, s.set.ours)], "every raw row read"))
		return nil
	})
}

// rollUp has a gateway make the rollups of the data.
func rollUp(ctx context.Context, url string, d workload.Devops) error {
	body, err := json.Marshal(map[string]any{"args": []string{strconv.FormatInt(d.Start, 10), strconv.FormatInt(d.End(), 10), d.Metric()}, "margin": "0s"})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/tools/rollup", bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte("#end "))) {
		err = fmt.Errorf("rollup: got %d %.500s", resp.StatusCode, answer)
	}
	return err
}
