package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
)

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
			if took := time.Since(began); took > gateway.StoreCloseTimeout ||
				!strings.Contains(logged.String(), want) || want == "" && logged.Len() > 0 {
				t.Errorf("a close of %v: returned after %v, logged %q, want %q", takes, took, &logged, want)
			}
			time.Sleep(takes) // simulated by synctest: a goroutine left behind would fail the bubble
		})
	}
}

// The program ends with the error of a start once the master, which was away then, says that a right is lacking.
func TestServe_rights(t *testing.T) {
	fake := hbasefake.For(t, hbasefake.Options{})
	fake.CreateTable("tsdb", []string{"t"})
	fake.CreateTable("tsdb-uid", []string{"id", "name"})
	fake.Deny("tsdb-uid:name")
	var asked atomic.Int64
	fake.SetHook(func(call hbasefake.Call) hbasefake.Fault {
		if call.Method == "HasUserPermissions" && asked.Add(1) < 3 {
			return hbasefake.Fault{Kind: hbasefake.Refuse, Exception: "org.apache.hadoop.hbase.DoNotRetryIOException"}
		}
		return hbasefake.Fault{}
	})

	cfg, err := gatewaytest.Parse(map[string]string{
		"DOWNPOUR_STORE":  "hbase:" + fake.Address(),
		"DOWNPOUR_LISTEN": "127.0.0.1:0",
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg.RightsAgain = time.Millisecond
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	err = serve(ctx, cfg, options{}, io.Discard)
	if !errors.Is(err, store.ErrDenied) || !strings.Contains(err.Error(), `DOWNPOUR_STORE=hbase:`) || ctx.Err() != nil {
		t.Errorf("got %v, want the error of a right that is lacking", err)
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("%d questions, want 3", n)
	}
}
