package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"downpour/bench"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/integration/differential"
	"downpour/integration/e2e"
	"downpour/pushdown/store"
)

// Sizes of the data of rollups and histograms: sums and counts of 30 days of hours, and a
// histogram a minute for 1,000 minutes, both of all hosts.
const (
	rollupDays       = 30
	histogramMinutes = 1000
)

// rollupQuery asks for averages of the rollups.
func rollupQuery(t *set) workload.Query {
	q := t.whole("sum:1h-avg:%s")
	q.Start = rollupStart(t.data)
	q.End = q.Start + rollupDays*24*hour - 1
	return q
}

// rollupCells is what it reads: of an average two cells, a sum and a count.
func rollupCells(t *set) int { return t.data.Hosts * rollupDays * 24 * 2 }

// percentiles asks for percentiles of the histograms.
func percentiles(t *set) workload.Query {
	q := t.whole("sum:10m-sum:percentiles[50,99]:rollup_raw:%s")
	q.End = q.Start + histogramMinutes*60 - 1
	return q
}

// histograms is how many histograms there are.
func histograms(t *set) int { return t.data.Hosts * histogramMinutes }

// rollupStart is the midnight at or before the start of the data: rows of the rollup table
// span a day.
func rollupStart(d workload.Devops) int64 { return d.Start - d.Start%(24*3600) }

// fillRollups writes the cells of rollups and histograms, flushed and compacted into one file a region.
func fillRollups(ctx context.Context, s *stage) error {
	d, data := s.set.data, s.set.at.Tables.Data
	rollup := data + "-1h"
	s.set.env = map[string]string{
		"DOWNPOUR_ROLLUPS": s.set.rollupFile, "DOWNPOUR_HISTOGRAMS": differential.HistogramConfig,
	}
	s.set.tsd = map[string]string{
		"tsd.rollups.enable":         "true",
		"tsd.rollups.config":         s.set.rollupFile,
		"tsd.core.histograms.config": differential.HistogramConfig,
	}

	target := targetAt(s.set.at, 0)
	keys, err := target.Keys(ctx, d)
	if err != nil {
		return err
	}
	rnd := rand.New(rand.NewPCG(d.Seed, 9))
	rolled, raw := &bench.Cells{Store: target.Store, Table: rollup}, &bench.Cells{Store: target.Store, Table: data}
	for host := range d.Hosts {
		key := keys[host*d.MetricCount]
		at := func(second int64) []byte {
			return target.Schema.AppendRowKey(nil, key.Metric, uint32(second), key.Tags)
		}
		for day := range rollupDays {
			addRollups(ctx, rolled, rnd, at(rollupStart(d)+int64(day)*24*3600))
		}
		// A row holds an hour; the last one holds what is left.
		for minute := 0; minute < histogramMinutes; minute += 60 {
			addHistograms(ctx, raw, rnd, at(d.Start+int64(minute)*60), min(60, histogramMinutes-minute))
		}
	}
	if err := errors.Join(rolled.Flush(ctx), raw.Flush(ctx)); err != nil {
		return err
	}
	return errors.Join(s.maker.HBase.Admin.Compact(ctx, rollup), s.set.at.Compact(ctx))
}

// addRollups adds the sums and counts of a day.
func addRollups(ctx context.Context, to *bench.Cells, rnd *rand.Rand, row []byte) {
	for hour := range 24 {
		// By differential.RollupConfig id 0 is the sum and 1 the count, of a point every 10 s.
		for id, v := range []int64{rnd.Int64N(36000), 360} {
			value := encoding.AppendInt(nil, v)
			qualifier := encoding.AppendRollupQualifier(nil, byte(id), hour, false, len(value))
			to.Add(ctx, store.Mutation{Row: row, Qualifier: qualifier, Value: value})
		}
	}
}

// addHistograms adds a histogram of eight buckets for each minute.
func addHistograms(ctx context.Context, to *bench.Cells, rnd *rand.Rand, row []byte, minutes int) {
	edges := []float32{0, 1, 2.5, 5, 10, 25, 50, 100, 1000}
	for minute := range minutes {
		h := encoding.Histogram{Overflow: rnd.Int64N(3)}
		for i, lower := range edges[:len(edges)-1] {
			h.Buckets = append(h.Buckets, encoding.HistogramBucket{
				Lower: lower,
				Upper: edges[i+1],
				Count: rnd.Int64N(300),
			})
		}
		to.Add(ctx, store.Mutation{
			Row:       row,
			Qualifier: encoding.AppendHistogramQualifier(nil, int32(minute)*60_000, false),
			Value:     encoding.AppendHistogram([]byte{differential.HistogramCodec}, &h),
		})
	}
}

// makesRollups are the settings of a side that makes the rollups of the data set itself.
func makesRollups(s *stage) map[string]string {
	return map[string]string{
		"DOWNPOUR_RESULT_CACHE":       "off",
		"DOWNPOUR_RESULT_CACHE_PROOF": "timestamps",
		"DOWNPOUR_ROLLUPS":            "auto:" + s.set.rollupFile,
		"DOWNPOUR_ROLLUP_RATE":        "off",
		"DOWNPOUR_TABLE_STATE":        s.set.at.Tables.Data + "-state",
	}
}

// makeRollups has the side make them, and waits until queries read them.
func makeRollups(ctx context.Context, s *stage) error {
	t := s.set
	server, err := s.side(ctx, made)
	if err != nil {
		return err
	}
	s.cfg.Progress.Sayf("making rollups")
	began := time.Now()
	if err := rollUp(ctx, server.URL, t.data); err != nil {
		return err
	}
	f := report.Figure{
		Name: t.name + ", rollups made", Work: int64(t.data.Points()), Unit: "points",
		Runs: []time.Duration{time.Since(began)},
	}
	s.cfg.Report.Figures = append(s.cfg.Report.Figures, f)
	s.judge(rated(t.name, 0), "rollups made of "+t.rows+", while others are written", f, f)

	s.cfg.Progress.Sayf("waiting until they are proven")
	query := t.whole("sum:1h-avg:%s")
	within, cancel := context.WithTimeout(ctx, 2*provenAfter)
	defer cancel()
	return e2e.Until(within, 20*time.Second, func(ctx context.Context) error {
		if err := rollUp(ctx, server.URL, t.data); err != nil {
			return err
		}
		answer, err := server.Ask(ctx, workload.Query{Path: query.String() + "&explain=true"})
		if err == nil && !bytes.Contains(answer, []byte(`"rollups":"table `+t.at.Tables.Data+"-1h ")) {
			err = fmt.Errorf("rollups are not read: %.1000s", answer)
		}
		return err
	})
}

// rollUp has a gateway make the rollups of the data.
func rollUp(ctx context.Context, url string, d workload.Devops) error {
	args := []string{strconv.FormatInt(d.Start, 10), strconv.FormatInt(d.End(), 10), d.Metric()}
	body, err := json.Marshal(map[string]any{"args": args, "margin": "0s"})
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
