package tools

import (
	"bufio"
	"context"
	"errors"
	"maps"
	"slices"

	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/gateway/extra/tools/pointfile"
	"downpour/pushdown/process/memory"
)

// allParquet writes what is requested as a Parquet file: points alone, all that queries give, also those that no import
// takes. All of a file has the same columns, so the keys of rows are read before, for the tag keys that there are.
func (x *exporter) allParquet(ctx context.Context, req exportRequest) (err error) {
	x.counts.Format = req.format
	metrics := req.metrics
	if req.all {
		if metrics, err = x.allNames(ctx, false); err != nil {
			return err
		}
	}
	keys, err := x.tagKeys(ctx, req, metrics)
	if err != nil {
		return err
	}

	out := bufio.NewWriterSize(fileBytes{x.out}, linesBuffer)
	x.file = pointfile.New(out, batch.ResultColumns{TagKeys: keys})
	held := memory.NewLease(ctx)
	err = x.eachRow(ctx, req, metrics, false, func(p *scanplan.Plan, row seriesRow) error {
		if err := held.Grow(x.file.Bytes()); err != nil {
			return err
		}
		return x.addRow(p, row)
	})
	if err != nil {
		return err
	}
	x.counts.Metrics = len(metrics)
	return errors.Join(x.file.Close(), out.Flush())
}

// tagKeys returns the tag keys of the series that have rows, sorted.
func (x *exporter) tagKeys(ctx context.Context, req exportRequest, metrics []string) ([]string, error) {
	account := memory.Of(ctx)
	keys := map[string]bool{}
	err := x.eachRow(ctx, req, metrics, true, func(_ *scanplan.Plan, row seriesRow) error {
		for _, t := range row.named.tags {
			if keys[t.K] {
				continue
			}
			if err := account.Reserve(ctx, int64(entryBytes+len(t.K))); err != nil {
				return err
			}
			keys[t.K] = true
		}
		return nil
	})
	return slices.Sorted(maps.Keys(keys)), err
}

// addRow adds the points of a row that lie between the plan's start and end to the file, and counts its annotations.
func (x *exporter) addRow(p *scanplan.Plan, row seriesRow) error {
	if err := x.decode(row.key.BaseTime, row.Cells); err != nil {
		return err
	}
	// Rows are of whole hours.
	from, _ := slices.BinarySearch(x.points.Time, p.Start)
	to, _ := slices.BinarySearch(x.points.Time, p.End+1)
	series := pointfile.Series{Metric: row.named.metric, Tags: row.named.tags}
	if err := x.file.Add(series, x.points.Slice(from, to)); err != nil {
		return err
	}
	x.counts.Points += int64(to - from)
	return x.writeAnnotations(p, "")
}
