package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A store that does not answer is named after some seconds, one that does is not;
// in simulated time.
func TestWaiting(t *testing.T) {
	for answers, want := range map[time.Duration]int{silence - 1: 0, silence + 1: 1} {
		synctest.Test(t, func(t *testing.T) {
			var logged bytes.Buffer
			answered := waiting(slog.New(slog.NewTextHandler(&logged, nil)), "hbase:zk:2181")
			time.Sleep(answers)
			answered()
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := strings.Count(logged.String(), "store=hbase:zk:2181"); got != want {
				t.Errorf("answered after %v: named %d times, want %d: %s", answers, got, want, &logged)
			}
		})
	}
}
