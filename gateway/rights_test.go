package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store"
)

// guarded is a store that reports our rights only once the test has set them.
type guarded struct {
	*gatewaytest.Faulty
	asked   atomic.Int64
	granted atomic.Bool // has reported that no right is missing
	answer  atomic.Pointer[error]
}

func (g *guarded) Features() store.Features {
	f := g.Faulty.Features()
	f.CheckReadable = g.CheckReadable
	return f
}

func (g *guarded) CheckReadable(context.Context, []store.Families) error {
	err := *g.answer.Load()
	g.asked.Add(1)
	g.granted.Store(err == nil)
	return err
}

func (g *guarded) tell(err error) { g.answer.Store(&err) }

// A gateway that learns only while it runs that it may not read everything is not ready any more, and ends with the
// error of a start: not a moment later than it must, whatever balancers may take to notice. One that may read
// everything serves on.
func TestRights(t *testing.T) {
	cfg := config(0)
	cfg.RightsAgain, cfg.Drain = time.Millisecond, 24*time.Hour
	for name, answer := range map[string]error{
		"granted": nil,
		"denied":  fmt.Errorf("%w: no right READ", store.ErrDenied),
	} {
		t.Run(name, func(t *testing.T) {
			st := &guarded{Faulty: gatewaytest.NewFaulty(memoryStore(t, cfg))}
			st.tell(errors.New("the master is away"))
			var log bytes.Buffer
			g, err := gateway.Start(t.Context(), cfg, st, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			b := &bench{T: t, Config: cfg, Store: st.Faulty, Gateway: g}
			b.Put("m 1356998400 1 host=a")
			eventually(t, "it is asked again", func() bool { return st.asked.Load() > 2 })
			if a := b.Get("/readyz"); a.Status != http.StatusOK {
				t.Errorf("while nothing is reported: %d %s", a.Status, a.Body)
			}

			st.tell(answer)
			ctx, stop := context.WithTimeout(t.Context(), gatewaytest.Patience)
			defer stop()
			if answer == nil {
				eventually(t, "it is told", st.granted.Load)
				stop()
			}
			got := g.Wait(ctx)
			if !errors.Is(got, answer) ||
				answer != nil && got.Error() != "DOWNPOUR_STORE="+cfg.Store+": "+answer.Error() {
				t.Errorf("got %v, want %v", got, answer)
			}
			if a := b.Get("/readyz"); answer != nil && (a.Status != http.StatusServiceUnavailable ||
				!strings.Contains(a.Body, answer.Error())) || answer == nil && a.Status != http.StatusOK {
				t.Errorf("/readyz: %d %s", a.Status, a.Body)
			}

			over := make(chan struct{})
			close(over)
			g.DrainUntil(over)
			if err := g.Close(); err != nil {
				t.Error(err)
			}
			for part, want := range map[string]bool{
				`level=ERROR msg="the gateway ends"`: answer != nil,
				"DOWNPOUR_DRAIN=24h":                 answer == nil,
			} {
				if strings.Contains(log.String(), part) != want {
					t.Errorf("%s in the log is %v, want %v:\n%s", part, !want, want, &log)
				}
			}
		})
	}
}
