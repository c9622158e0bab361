package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/integration/e2e"
	"downpour/pushdown/process/sdnotify/sdnotifytest"
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

// The program ends with the error of a start once the master, which was away then, says that a right is missing.
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

// The service manager hears that the gateway is ready once it serves, and not while it waits for its store; and that
// it ends.
func TestServe_notifies(t *testing.T) {
	manager := sdnotifytest.Listen(t)
	fake := hbasefake.For(t, hbasefake.Options{})
	fake.CreateTable("tsdb", []string{"t"})
	fake.CreateTable("tsdb-uid", []string{"id", "name"})
	var ports [2]int // of HBase, where nobody listens yet, and of the gateway
	for i := range ports {
		var err error
		if ports[i], err = e2e.FreePort(); err != nil {
			t.Fatal(err)
		}
	}
	hbase, listen := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	cfg, err := gatewaytest.Parse(map[string]string{"DOWNPOUR_STORE": "hbase:" + hbase, "DOWNPOUR_LISTEN": listen})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- serve(ctx, cfg, options{}, io.Discard) }()
	answers := func(path string) int {
		r, err := http.Get("http://" + listen + path)
		if err != nil {
			return 0
		}
		r.Body.Close()
		return r.StatusCode
	}
	gatewaytest.Eventually(t, "the gateway to live", func() bool { return answers("/healthz") == http.StatusOK })
	if status := answers("/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("without HBase: /readyz %d, want 503", status)
	}
	manager.None()

	forward(t, hbase, fake.Address())
	if state := manager.Next(); state != "READY=1" || answers("/readyz") != http.StatusOK {
		t.Errorf("the service manager got %q while /readyz is %d, want READY=1 and 200", state, answers("/readyz"))
	}
	manager.None()
	stop()
	if state := manager.Next(); state != "STOPPING=1" {
		t.Errorf("the service manager got %q, want STOPPING=1", state)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// forward passes connections to one address on to another, until the test ends.
func forward(t *testing.T, from, to string) {
	t.Helper()
	l, err := net.Listen("tcp", from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			go func() { defer out.Close(); _, _ = io.Copy(out, in) }()
			go func() { defer in.Close(); _, _ = io.Copy(in, out) }()
		}
	}()
}
