package limit

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"downpour/gateway/query"
	"downpour/pushdown/operator"
	"downpour/pushdown/process/memory"
)

// left returns the points and bytes that a sub-query may read.
func left(l *Limits, q query.Query, metric string) [2]int64 {
	points, bytes := l.Budget(context.Background(), &q, &query.SubQuery{Metric: metric}).Left()
	return [2]int64{points, bytes}
}

func TestLimits_Budget(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.json")
	write := func(text string, stamp int64) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Unix(stamp, 0), time.Unix(stamp, 0)); err != nil {
			t.Fatal(err)
		}
	}
	write(`[{"regex":"^sys\\.cpu","dataPointsLimit":7},{"regex":"sys","byteLimit":8,"dataPointsLimit":9}]`, 1000)
	o, err := LoadOverrides(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l := New(Config{Points: 100, Bytes: 200, PointsOverride: true, Overrides: o})
	f := func(q query.Query, metric string, points, bytes int64) {
		t.Helper()
		if got := left(l, q, metric); got != [2]int64{points, bytes} {
			t.Errorf("%s: %d, want %d points and %d bytes", metric, got, points, bytes)
		}
	}
	f(query.Query{}, "m", 100, 200)
	f(query.Query{}, "", 100, 200) // TSUIDs
	f(query.Query{}, "sys.cpu.user", 7, 0)
	f(query.Query{}, "my.sys", 9, 8)
	f(query.Query{OverrideDataPointLimit: true, OverrideByteLimit: true}, "m", 0, 200)
	f(query.Query{OverrideDataPointLimit: true}, "sys.cpu", 0, 0)

	again := func() { o.mu.checked = time.Time{} }
	write(`[{"regex":"m","dataPointsLimit":5}]`, 2000)
	again()
	f(query.Query{}, "m", 5, 0)
	f(query.Query{}, "sys", 100, 200)
	write(`[{"regex":"("}]`, 3000)
	again()
	f(query.Query{}, "m", 5, 0)
}

func TestLoadOverrides_refuses(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "limits.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadOverrides(path, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	f("{", "unexpected end")
	f(`[{"regex":""}]`, "entry 0: regex is empty")
	f(`[{"regex":"a"},{"regex":"b","byteLimit":-1}]`, "entry 1: byteLimit -1")
	f(`[{"regex":"("}]`, "entry 0: error parsing regexp")
	if _, err := LoadOverrides(filepath.Join(t.TempDir(), "absent"), nil); err == nil {
		t.Error("a file that does not exist: got no error")
	}
}

// A heavy query waits until another one ends, and a light one does not. A query that waits too
// long is refused, and one whose client leaves ends.
func TestLimits_heavy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Heavy: 1, HeavyPoints: 10})
		budget := func(ctx context.Context) operator.Budget { return l.Budget(ctx, &query.Query{}, &query.SubQuery{}) }
		first, entryFirst := l.Enter(t.Context(), memory.Query)
		// Two sub-queries of one query share a slot.
		for range 2 {
			if err := budget(first).Spend(first, 11, 0); err != nil {
				t.Fatal(err)
			}
		}
		light, entryLight := l.Enter(t.Context(), memory.Query)
		if err := budget(light).Spend(light, 10, 1<<40); err != nil {
			t.Fatal(err)
		}
		entryLight.Close()

		second, entrySecond := l.Enter(t.Context(), memory.Query)
		done := make(chan error, 1)
		go func() { done <- budget(second).Spend(second, 11, 0) }()
		synctest.Wait()
		if len(done) != 0 {
			t.Fatal("a second heavy query does not wait")
		}
		entryFirst.Close()
		if err := <-done; err != nil {
			t.Fatal(err)
		}

		third, entryThird := l.Enter(t.Context(), memory.Query)
		var limit *operator.LimitError
		if err := budget(third).Spend(third, 11, 0); !errors.As(err, &limit) || limit.What != operator.Queries ||
			limit.Limit != 1 {
			t.Errorf("got %v, want a refusal", err)
		}
		entryThird.Close()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		fourth, entryFourth := l.Enter(gone, memory.Query)
		if err := budget(fourth).Spend(fourth, 11, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that the client is gone", err)
		}
		entryFourth.Close()
		entrySecond.Close()
		if n := len(l.gate.slots); n != 0 {
			t.Errorf("%d slots are held, want none", n)
		}
	})
}

// A heavy query that yields lets another one go, and waits for it, as long as it has time, once it reads on.
func TestLimits_yield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Heavy: 1, HeavyPoints: 10})
		spend := func(ctx context.Context, b operator.Budget) <-chan error {
			done := make(chan error, 1)
			go func() { done <- b.Spend(ctx, 11, 0) }()
			synctest.Wait()
			return done
		}
		first, entryFirst := l.Enter(t.Context(), memory.Query)
		defer entryFirst.Close()
		budget := l.Budget(first, &query.Query{}, &query.SubQuery{})
		if err := <-spend(first, budget); err != nil {
			t.Fatal(err)
		}
		second, entrySecond := l.Enter(t.Context(), memory.Query)
		waits := spend(second, l.Budget(second, &query.Query{}, &query.SubQuery{}))
		if len(waits) != 0 {
			t.Fatal("a second heavy query does not wait")
		}
		entryFirst.Yield()
		if err := <-waits; err != nil {
			t.Fatal(err)
		}

		waits = spend(first, budget)
		time.Sleep(10 * maxWait)
		if len(waits) != 0 {
			t.Fatal("a query that reads on needs no slot, or is refused")
		}
		entrySecond.Close()
		if err := <-waits; err != nil {
			t.Fatal(err)
		}
		entryFirst.Close()
		if n := len(l.gate.slots); n != 0 {
			t.Errorf("%d slots are held, want none", n)
		}
	})
}
