package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"downpour/gateway"
)

// A store that does not answer is named in the log after some seconds, one that does is not. The
// test runs in simulated time.
func TestLogWait(t *testing.T) {
	for answers, want := range map[time.Duration]int{logWaitAfter - 1: 0, logWaitAfter + 1: 1} {
		synctest.Test(t, func(t *testing.T) {
			var logged bytes.Buffer
			answered := logWait(slog.New(slog.NewTextHandler(&logged, nil)), "hbase:zk:2181")
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

// closing is a store whose Close takes so long.
type closing time.Duration

func (c closing) Close() error {
	time.Sleep(time.Duration(c))
	return nil
}

// The program ends although its store hangs.
func TestCloseStore(t *testing.T) {
	for takes, want := range map[time.Duration]string{gateway.StoreCloseTimeout - 1: "", time.Hour: "did not close"} {
		synctest.Test(t, func(t *testing.T) {
			var logged bytes.Buffer
			began := time.Now()
			closeStore(closing(takes), gateway.StoreCloseTimeout, slog.New(slog.NewTextHandler(&logged, nil)))
			if took := time.Since(began); took > gateway.StoreCloseTimeout || !strings.Contains(logged.String(), want) || want == "" && logged.Len() > 0 {
				t.Errorf("a close of %v: returned after %v, logged %q, want %q", takes, took, &logged, want)
			}
			time.Sleep(takes) // simulated by synctest: a goroutine left behind would fail the bubble
		})
	}
}
