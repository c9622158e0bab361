package sealing_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"downpour/encoding"
	"downpour/gateway/extra/sealing"
	"downpour/pushdown/process/logtest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open/opentest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run runs a worker for a time, on a clock that is the bubble's.
func run(t *testing.T, w *sealing.Worker, lasts time.Duration) *logtest.Log {
	t.Helper()
	log := new(logtest.Log)
	w.Log, w.Now, w.Table = slog.New(slog.NewTextHandler(log, nil)), time.Now, "tsdb"
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	w.Run(ctx)
	return log
}

// counted are the worker's metrics, by name.
func counted(t *testing.T, w *sealing.Worker) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(w)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]float64{}
	for _, f := range families {
		n[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue()
	}
	return n
}

// A worker keeps its rate, seals hours that ended an hour ago, says how far it is each minute, and begins again
// every ten minutes, also after an error.
//
//fault:seal-without-margin now.Add(-margin) => now
func TestWorker_pace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var passes []time.Duration
		w := &sealing.Worker{Rate: 100, Busy: func() int { return 0 }}
		w.Seal = func(
			_ context.Context, table string, since, before time.Time, pace func(store.SealReport) error,
		) (r store.SealReport, err error) {
			if want := time.Now().Add(-time.Hour); !before.Equal(want) || table != "tsdb" {
				t.Errorf("rows of %s before %v are sealed, want those of tsdb before %v", table, before, want)
			}
			if (len(passes) == 0) != since.IsZero() {
				t.Errorf("pass %d begins with %v, want all hours the first time alone", len(passes), since)
			}
			passes = append(passes, time.Since(began).Round(10*time.Second))
			if len(passes) == 2 {
				return r, errors.New("no such luck")
			}
			for range 180 {
				r.Rows += 50
				r.Sealed += 50
				r.Before += 1000
				r.After += 300
				if err := pace(r); err != nil {
					return r, err
				}
			}
			return r, nil
		}
		log := run(t, w, 20*time.Minute)
		// 9,000 rows take one and a half minutes.
		if len(passes) != 2 || passes[0] != 0 || passes[1] != 11*time.Minute+30*time.Second {
			t.Errorf("passes began after %v, want 0 and 11m30s", passes)
		}
		if n := strings.Count(log.String(), "are being sealed"); n != 1 ||
			!strings.Contains(log.String(), `rows are sealed" rows=9000`) ||
			!strings.Contains(log.String(), "no such luck") {
			t.Errorf("log: %s", log)
		}
		want := map[string]float64{
			"downpour_seal_rows_total":         9000,
			"downpour_seal_bytes_before_total": 180_000,
			"downpour_seal_bytes_after_total":  54_000,
			"downpour_seal_failures_total":     1,
		}
		for name, n := range counted(t, w) {
			if n != want[name] {
				t.Errorf("%s is %v, want %v", name, n, want[name])
			}
		}
	})
}

// A pass over all hours that takes longer than the time between two of them is followed by those over the
// hours that have become old.
func TestWorker_longPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w, whole, others := &sealing.Worker{Rate: 100, Busy: func() int { return 0 }}, 0, 0
		w.Seal = func(
			_ context.Context, _ string, since, _ time.Time, _ func(store.SealReport) error,
		) (r store.SealReport, err error) {
			switch {
			case since.IsZero():
				whole++
				time.Sleep(30 * time.Hour)
			case others == 0 && !since.Equal(began.Add(-time.Hour)):
				t.Errorf("the second pass begins with hours from %v on, want those since the first began", since)
				fallthrough
			default:
				others++
			}
			return r, nil
		}
		run(t, w, 60*time.Hour)
		if whole != 2 || others < 100 {
			t.Errorf("%d passes over all hours and %d others in 60 h, want 2 and one each ten minutes in between",
				whole, others)
		}
	})
}

// In a store, an hour is sealed between one and two hours after its end, and is read as before.
func TestWorker_store(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		schema := encoding.DefaultSchema()
		st := opentest.Embedded(t, opentest.Table("tsdb", "t"))
		hour := encoding.Hour(time.Now().Unix())
		row := schema.AppendRowKey(nil, encoding.UID{0, 0, 1}, encoding.KeyTime(hour), []byte{0, 0, 1, 0, 0, 1})
		var entries []byte
		for i := range 360 {
			entries = encoding.AppendEntry(entries, encoding.Qualifier{OffsetMS: int32(i) * 10_000, Width: 1},
				[]byte{byte(i % 90)})
		}
		if err := st.Apply(t.Context(), "tsdb", []store.Mutation{
			{Kind: store.Append, Row: row, Family: "t", Qualifier: encoding.AppendColumn, Value: entries},
		}); err != nil {
			t.Fatal(err)
		}

		w := &sealing.Worker{Seal: st.Features().Seal, Rate: 1000}
		untilEnd := time.Until(time.Unix(hour+3600, 0))
		run(t, w, untilEnd+time.Hour-time.Minute)
		if n := counted(t, w)["downpour_seal_rows_total"]; n != 0 {
			t.Errorf("%v rows sealed within the hour after theirs, want none", n)
		}
		run(t, w, time.Hour)
		n := counted(t, w)
		if n["downpour_seal_rows_total"] != 1 ||
			n["downpour_seal_bytes_after_total"] > n["downpour_seal_bytes_before_total"]/2 {
			t.Errorf("%v, want one row in half of its bytes", n)
		}
		rows, err := st.Get(t.Context(), "tsdb", "t", [][]byte{row})
		if err != nil || len(rows) != 1 || !bytes.Equal(rows[0].Cells[0].Value, entries) {
			t.Errorf("%d rows, %v, want the entries that were put", len(rows), err)
		}
	})
}
