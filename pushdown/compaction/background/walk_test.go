package background

import (
	"fmt"
	"testing"
	"time"

	"downpour/pushdown/lease"
	"downpour/pushdown/store"
)

func TestAfter(t *testing.T) {
	for prefix, want := range map[string]string{
		"\x00\x00\x01": "000002", "\x01\xff\xff": "02", "\x01\x02\xff": "0103", "\xff\xff": "",
	} {
		if got := fmt.Sprintf("%x", after([]byte(prefix))); got != want {
			t.Errorf("after %x: got %s, want %s", prefix, got, want)
		}
	}
}

// Hours end by the clock of the configuration.
func TestNew_clock(t *testing.T) {
	at := time.Unix(100*hour+1800, 0)
	w := New(Config{Leases: &lease.Keeper{}, Now: func() time.Time { return at }})
	if sealed, next := w.sealed(&region{}); sealed > 100*hour || sealed < 99*hour || next <= 0 || next > time.Hour {
		t.Errorf("hours are sealed up to %d, the next one in %v, want hour 99 or 100", sealed, next)
	}

	// Regions are due at different times.
	times := map[time.Duration]bool{}
	for i := range byte(20) {
		_, next := w.sealed(&region{KeyRange: store.KeyRange{Start: []byte{i}}})
		times[next] = true
	}
	if len(times) < 5 {
		t.Errorf("20 regions are due at %v, want other times for each", times)
	}
}
