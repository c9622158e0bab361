package retention

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"downpour/gateway/extra/retention/rules"
	"downpour/pushdown/store"
)

// Report is what a run has found and deleted, or would delete.
type Report struct {
	At      int64         `json:"at"`   // time of the run, in seconds
	Kept    int           `json:"kept"` // metrics that no line of the rules matches
	Rows    int64         `json:"rows"` // that are past
	Deleted int64         `json:"deleted"`
	Tables  []TableReport `json:"tables"`
}

// TableReport is what was found in one table.
type TableReport struct {
	Name       string `json:"name"`
	Metrics    int    `json:"metrics"` // whose rows go at some age
	Rows       int64  `json:"rows"`
	Bytes      int64  `json:"bytes"` // of keys, qualifiers and values; 0 if they were not counted
	DiskBytes  int64  `json:"diskBytes"`
	Deleted    int64  `json:"deleted"`
	Impossible int    `json:"impossible"` // rows that stay because their key is impossible
	// OneAge is the age of all metrics of the table, in seconds, 0 if they differ or rows of one are kept.
	OneAge  int64          `json:"oneAge,omitempty"`
	Largest []MetricReport `json:"largest"` // those with the most rows
}

// MetricReport is what was found of one metric.
type MetricReport struct {
	Metric string `json:"metric"`
	Rule   string `json:"rule"`
	Before int64  `json:"before"` // the time from which on rows stay, in seconds
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
}

// largest is the number of metrics that a report names of each table.
const largest = 50

// add adds a table's counts.
func (r *Report) add(p *past) {
	t := TableReport{
		Name:       p.table.Name,
		Metrics:    len(p.metrics),
		Rows:       p.rows,
		Bytes:      p.bytes,
		Impossible: p.impossibleRows,
	}
	for i := range p.metrics {
		m := &p.metrics[i]
		switch {
		case i == 0:
			t.OneAge = int64(m.age)
		case rules.Age(t.OneAge) != m.age:
			t.OneAge = 0
		}
		if m.rows > 0 {
			// The first row that stays begins with the span after the last that goes.
			before := p.table.Span.Next(int64(m.cut) - 1)
			t.Largest = append(t.Largest, MetricReport{
				Metric: m.name,
				Rule:   m.rule.String(),
				Before: before,
				Rows:   m.rows,
				Bytes:  m.bytes,
			})
		}
	}
	// Of a metric that no line matches, and one whose line says keep.
	if p.kept > 0 {
		t.OneAge = 0
	}

	slices.SortStableFunc(t.Largest, func(a, b MetricReport) int { return int(min(1, max(-1, b.Rows-a.Rows))) })
	t.Largest = t.Largest[:min(len(t.Largest), largest)]
	r.Tables = append(r.Tables, t)
	r.Rows += p.rows
}

// String sums up a run in one line.
func (r *Report) String() string {
	text := fmt.Sprintf("%d rows were past, %d deleted", r.Rows, r.Deleted)
	for _, t := range r.Tables {
		if t.Impossible > 0 {
			text += fmt.Sprintf("; table %s: %d rows with an impossible key stay (gateway fsck tells of them)", t.Name,
				t.Impossible)
		}
	}
	return text
}

// Print writes what would be deleted, a line for each table and each of its largest metrics.
func (r *Report) Print(out io.Writer) {
	for _, t := range r.Tables {
		fmt.Fprintf(out, "table %s: %d rows of %d bytes are past", t.Name, t.Rows, t.Bytes)
		if t.DiskBytes > 0 {
			fmt.Fprintf(out, ", about %d bytes on the disk", t.DiskBytes)
		}
		fmt.Fprintln(out)
		for _, m := range t.Largest {
			fmt.Fprintf(out, "  %s: %d rows of %d bytes before %s (%s)\n", m.Metric, m.Rows, m.Bytes,
				time.Unix(m.Before, 0).UTC().Format("2006-01-02 15:04 UTC"), m.Rule)
		}
		if t.Impossible > 0 {
			fmt.Fprintf(out, "  %d rows with an impossible key stay; gateway fsck tells of them\n", t.Impossible)
		}
	}
	if r.Kept > 0 {
		fmt.Fprintf(out, "%d metrics match no line and are kept\n", r.Kept)
	}
}

// diskBytes returns about how many bytes on the disk hold the rows that go.
func diskBytes(ctx context.Context, st store.RangeDeleter, p *past) (n int64, err error) {
	for some := range chunks(p.ranges(withRows), rangesPerDelete) {
		more, err := st.DiskBytes(ctx, p.table.Name, some)
		if err != nil {
			return 0, fmt.Errorf("table %s: %w", p.table.Name, err)
		}
		n += more
	}
	return n, nil
}
