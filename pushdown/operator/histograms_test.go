package operator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
)

// histogramPart is a part of two hours of n series, each with a histogram every half an hour, an annotation and a point
// in each hour. It sums those of each group.
func histogramPart(n int) (*operatortest.Store, *scanplan.Part) {
	s, m := encoding.DefaultSchema(), &operatortest.Store{BlockRows: 2}
	for i := range n {
		tags := s.AppendTags(nil, []encoding.TagPair{operatortest.Tag(1, i+1)})
		for hour := range 2 {
			key := s.AppendRowKey(nil, metric, uint32(base+hour*3600), tags)
			h := encoding.NewHistogram([]encoding.HistogramBucket{{Lower: 0, Upper: 1, Count: int64(i + 1)}}, 0, 0)
			for _, offset := range []int32{0, 1800_000} {
				q, v := encoding.AppendHistogramQualifier(nil, offset, false), encoding.AppendHistogram([]byte{7}, &h)
				m.Cell(key, q, v, 1)
			}
			m.Cell(key, []byte{encoding.PrefixAnnotation, 0, 0}, []byte([]string{"first", "last"}[hour]), 1)
			// A point, which begins as an annotation does.
			m.Cell(key, []byte{encoding.PrefixAnnotation, 0}, []byte{1}, 1)
			m.Cell(key, []byte{9, 9, 9}, []byte("?"), 1)
		}
	}
	p := operatortest.Plan(s, metric, base, base+2*3600)
	p.Histograms = &scanplan.Histograms{Codec: 7, Buckets: true}
	p.GroupBy = []encoding.UID{operatortest.UID(1)}
	part := whole(p)
	part.Mode = scanplan.PartialAggregation
	return m, part
}

// readHistograms runs a part of histograms, and returns its rows as text, those of each record after a line.
func readHistograms(t *testing.T, m *operatortest.Store, part *scanplan.Part, opts operator.Options) (rows []string,
	stats operator.Stats, err error) {
	t.Helper()
	op, err := operator.New(m, part, opts)
	if err != nil {
		t.Fatal(err)
	}
	err = operatortest.Drain(t.Context(), op, func(r batch.Record) error {
		reader, err := batch.NewHistogramReader(r)
		if err != nil {
			return err
		}
		rows = append(rows, "record")
		var h batch.Histograms
		for i := range reader.Len() {
			if err := reader.At(i, &h); err != nil {
				return err
			}
			row := fmt.Sprintf("%x:", h.Group)
			for _, span := range h.Spans {
				row += fmt.Sprintf(" span %x", span)
			}
			for k, note := range h.Notes {
				row += fmt.Sprintf(" %x %s", h.NoteSpan[k], note)
			}
			for k, at := range h.Time {
				row += fmt.Sprintf(" %d=%d", at/1000-base, h.Count[k])
			}
			rows = append(rows, row)
		}
		return nil
	})
	return rows, op.Stats(), err
}

// A part of histograms names its series and annotations once, and adds up its histograms by group or by series. Points
// and cells of other kinds are skipped.
func TestHistograms(t *testing.T) {
	m, part := histogramPart(2)
	part.Plan.GroupBy = nil
	one, two := "000001000001000001", "000001000001000002"
	first, last := " "+one+" first "+two+" first", " "+one+" last "+two+" last"
	notes := func(series string) string { return " " + series + " first " + series + " last" }
	for mode, want := range map[scanplan.Mode][]string{
		scanplan.PartialAggregation: {"record",
			": span " + one + " span " + two + first + last, ": 0=3 1800=3 3600=3 5400=3"},
		scanplan.PerSeries: {"record", one + ": span " + one + notes(one), two + ": span " + two + notes(two),
			one + ": 0=1 1800=1 3600=1 5400=1", two + ": 0=2 1800=2 3600=2 5400=2"},
	} {
		part.Mode = mode
		got, stats, err := readHistograms(t, m, part, operator.Options{})
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v, want -, got +: %s", err, diff)
		}
		if stats.Points != 8 || stats.Skipped != 8 || stats.Spans != 2 {
			t.Errorf("%d histograms of %d series, %d cells are skipped, want 8 of 2, and 8", stats.Points, stats.Spans,
				stats.Skipped)
		}
	}
}

// A row ends with the histogram that fills it, and a record with the row that does: one histogram takes 44 bytes, the
// name and the first annotation of a series 50, its second annotation 32.
func TestHistograms_records(t *testing.T) {
	for flush, want := range map[int]string{ // n of a row of names, else the number of a row's histograms
		44: "|n|1|1|n|1|1|n1|1|n1|1",
		45: "|n|2|n|2|n2|n2",
		50: "|n|2|n|2|n2|n2",
		51: "|n2|n2|n2|n2",
		0:  "|nn44",
	} {
		m, part := histogramPart(2)
		rows, _, err := readHistograms(t, m, part, operator.Options{FlushBytes: flush})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, row := range rows {
			if n := strings.Count(row, "="); row == "record" {
				got += "|"
			} else if n == 0 {
				got += "n"
			} else {
				got += fmt.Sprint(n)
			}
		}
		if got != want {
			t.Errorf("records of %d bytes: got %s, want %s", flush, got, want)
		}
	}
}

// What a part of histograms needs by the count of its plan's bound, and what it reserves at most while it reads. The
// figures are estimates, see TestMemory_kinds.
func TestHistograms_memory(t *testing.T) {
	for flush, want := range map[int][2]int64{0: {34740, 36316}, 2000: {17546, 10676}} {
		m, part := histogramPart(20)
		var got [2]int64
		got[1], _ = heldAtMost(t, m, 2, part, operator.Options{FlushBytes: flush})
		part.Plan.MaxBytes = 1
		for {
			_, _, err := readHistograms(t, m, part, operator.Options{FlushBytes: flush})
			if err == nil {
				break
			}
			var limit *operator.LimitError
			if !errors.As(err, &limit) || limit.Limit != part.Plan.MaxBytes || limit.Need <= limit.Limit {
				t.Fatalf("%d bytes: %v", part.Plan.MaxBytes, err)
			}
			part.Plan.MaxBytes = limit.Need
		}
		if got[0] = part.Plan.MaxBytes; got != want {
			t.Errorf("records of %d bytes: got %d, want %d", flush, got, want)
		}
	}
}
