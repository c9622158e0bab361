package extra_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"downpour/gateway"
	"downpour/pushdown/store"
)

// small is an embedded store that says how much of its disk it takes.
type small struct {
	gateway.Store
	used, free int64
}

func (s *small) Features() store.Features { return store.Features{DiskUsage: s.DiskUsage} }

func (s *small) DiskUsage() (used, free int64, err error) { return s.used, s.free, nil }

// The start of a gateway whose store will have filled its disk within 30 days says so; that needs a
// start that was some time before. One whose disk has room for longer says nothing.
func TestStart_diskFills(t *testing.T) {
	cfg := config(0)
	now := int64(1356998400)
	cfg.Now = func() time.Time { return time.Unix(now, 0) }
	st := &small{Store: memoryStore(t, cfg)}
	starting := func(what string, want string) {
		t.Helper()
		b := serve(t, cfg, st)
		// The look at the start is over when its note is there.
		eventually(t, what, func() bool {
			rows, err := st.Get(t.Context(), cfg.TableState, "s", [][]byte{[]byte("disk")})
			return err == nil && len(rows) == 1 && strings.Contains(string(rows[0].Cells[0].Value), fmt.Sprint(now))
		})
		logs := b.Get("/logs").Body
		if want == "" && strings.Contains(logs, "the disk will be full") || !strings.Contains(logs, want) {
			t.Errorf("%s: the log is\n%s\nwant %q", what, logs, want)
		}
		if err := b.Gateway.Close(); err != nil {
			t.Error(err)
		}
	}
	st.used, st.free = 1000, 5000
	starting("first", "")
	now, st.used = now+86_400, 1100
	starting("a day later with 50 days left", "")
	now, st.used, st.free = now+86_400, 1200, 2900
	starting("29 days left", "days=29 free=2900 used=1200")
}
