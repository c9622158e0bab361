package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/pushdown/process/sdnotify/sdnotifytest"
	"downpour/pushdown/process/settings"
	"downpour/pushdown/process/version"
	"downpour/pushdown/rpc/auth/authtest"
	"downpour/pushdown/rpc/client"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
)

// clean removes Downpour's variables from the environment of the test, and then sets those of
// set, each as NAME=VALUE.
func clean(t *testing.T, set ...string) {
	for _, name := range settings.Known() {
		if value, ok := os.LookupEnv(name); ok {
			t.Setenv(name, value) // restores it afterwards
			os.Unsetenv(name)
		}
	}
	for _, s := range set {
		name, value, _ := strings.Cut(s, "=")
		t.Setenv(name, value)
	}
}

// The version needs no settings.
func TestRun_version(t *testing.T) {
	clean(t)
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-version"}, &out, io.Discard); err != nil ||
		out.String() != version.String()+"\n" {
		t.Errorf("printed %q, error %v, want the version and no error", &out, err)
	}
}

func TestRun_refuses(t *testing.T) {
	f := func(want string, set ...string) {
		t.Helper()
		t.Run(want, func(t *testing.T) {
			clean(t, set...)
			ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute) // ends a server that is not refused but serves
			defer stop()
			err := run(ctx, nil, io.Discard, io.Discard)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
	const hbase = "DOWNPOUR_STORE=hbase:127.0.0.1:2181"
	f("DOWNPOUR_STORE is not set")
	f("DOWNPOUR_STOER", hbase, "DOWNPOUR_STOER=pebble:x")
	f("want pebble:DIR, hbase:", "DOWNPOUR_STORE=oracle:x")
	f("beyond loopback", hbase, "DOWNPOUR_PUSHDOWN_LISTEN=0.0.0.0:4280")
	f(`DOWNPOUR_BESIDE: got "region-host", want HOST:PORT`, hbase, "DOWNPOUR_BESIDE=region-host")
	f(`got "3m", want a number, such as 500, 1M (1,000,000) or 64MiB (67,108,864)`, hbase, "DOWNPOUR_SALT_BUCKETS=3m")
	f("salt width 1000", hbase, "DOWNPOUR_SALT_WIDTH=1K")
	f("salt width 9", hbase, "DOWNPOUR_SALT_WIDTH=9")
	f("DOWNPOUR_TOKEN_FILE", hbase, "DOWNPOUR_TOKEN_FILE=/does/not/exist")
	f("DOWNPOUR_TLS_KEY", hbase, "DOWNPOUR_TLS_CERT=/does/not/exist")
	f(`DOWNPOUR_COMPACT: got "fast", want off or rows a second`, hbase, "DOWNPOUR_COMPACT=fast")
	f(`DOWNPOUR_ANNOUNCE: got "rs1", want HOST:PORT`, hbase, "DOWNPOUR_ANNOUNCE=rs1")
	f("DOWNPOUR_ANNOUNCE=rs1:4280: gateways that find", hbase, "DOWNPOUR_ANNOUNCE=rs1:4280")
	f("needs no compaction of rows", "DOWNPOUR_STORE=pebble:x", "DOWNPOUR_COMPACT=500")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f("DOWNPOUR_PUSHDOWN_LISTEN="+l.Addr().String(), hbase, "DOWNPOUR_PUSHDOWN_LISTEN="+l.Addr().String())
}

func TestRun_printConfig(t *testing.T) {
	clean(t, "DOWNPOUR_STORE=hbase:zk:2181", "DOWNPOUR_BESIDE=rs1:16020")
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-print-config"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"DOWNPOUR_STORE=hbase:zk:2181", "DOWNPOUR_BESIDE=rs1:16020",
		"DOWNPOUR_PUSHDOWN_LISTEN=127.0.0.1:4280", "DOWNPOUR_SALT_WIDTH=0"} {
		if !strings.Contains("\n"+out.String(), "\n"+line+"\n") {
			t.Errorf("no line %s in\n%s", line, &out)
		}
	}
}

// The program serves until it is stopped, with token and TLS when they are set.
func TestRun_serves(t *testing.T) {
	dir := t.TempDir()
	tokens, made := filepath.Join(dir, "tokens"), authtest.NewCertificate(t)
	write(t, tokens, []byte("# who may\nwrite wwwwwwwwwwwwwwww\nread rrrrrrrrrrrrrrrr\n"))
	clean(t, "DOWNPOUR_STORE=pebble:"+filepath.Join(dir, "data"), "DOWNPOUR_PUSHDOWN_LISTEN=127.0.0.1:0",
		"DOWNPOUR_BESIDE=rs1:16020",
		"DOWNPOUR_TOKEN_FILE="+tokens, "DOWNPOUR_TLS_CERT="+made.CertFile, "DOWNPOUR_TLS_KEY="+made.KeyFile,
		"DOWNPOUR_OPENTSDB_CONF=opentsdb.conf")
	manager := sdnotifytest.Listen(t)
	ctx, stop := context.WithCancel(t.Context())
	reader, logs := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- run(ctx, nil, io.Discard, logs) }()
	address := listening(t, reader)
	if state := manager.Next(); state != "READY=1" {
		t.Errorf("the service manager got %q, want READY=1", state)
	}

	c := settings.Common{TLSCert: made.CertFile, TLSKey: made.KeyFile}
	tls, err := c.PushdownTLS(nil)
	if err != nil {
		t.Fatal(err)
	}
	token, other := func() string { return "rrrrrrrrrrrrrrrr" }, func() string { return "wwwwwwwwwwwwwwww" }
	f := func(opts client.Options, ok bool) {
		t.Helper()
		c, err := client.New(address, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ask, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		h, err := c.Hello(ask)
		if ok != (err == nil) || ok && (h.Beside != "rs1:16020" || h.Schema != encoding.DefaultSchema()) {
			t.Errorf("hello %+v, %v, want it answered only over TLS and with a token that may read", h, err)
		}
	}
	f(client.Options{TLS: tls, Token: token}, true)
	f(client.Options{TLS: tls, Token: other}, false)
	f(client.Options{TLS: tls}, false)
	f(client.Options{Token: token}, false)

	t.Setenv("DOWNPOUR_PUSHDOWN_LISTEN", address)
	if err := run(ctx, []string{"-probe", "/healthz"}, io.Discard, io.Discard); err != nil {
		t.Error(err)
	}
	if err := run(ctx, []string{"-probe", "/readyz"}, io.Discard, io.Discard); err == nil ||
		!strings.Contains(err.Error(), "503") {
		t.Errorf("a store without tables: error %v, want the status 503", err)
	}
	manager.None()
	stop()
	if state := manager.Next(); state != "STOPPING=1" {
		t.Errorf("the service manager got %q, want STOPPING=1", state)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	logs.Close()
}

// A server that learns only while it runs that it may not read everything ends with the error of a
// start. One that may read serves until it is stopped.
func TestRun_rights(t *testing.T) {
	rightsAgain = time.Millisecond
	defer func() { rightsAgain = 0 }()
	for name, denied := range map[string][]string{"granted": {}, "denied": {"tsdb:t"}} {
		t.Run(name, func(t *testing.T) {
			fake := hbasefake.For(t, hbasefake.Options{})
			fake.CreateTable("tsdb", []string{"t"})
			fake.Deny(denied...)
			var away atomic.Bool
			away.Store(true)
			fake.SetHook(func(call hbasefake.Call) hbasefake.Fault {
				if call.Method == "HasUserPermissions" && away.Load() {
					return hbasefake.Fault{
						Kind:      hbasefake.Refuse,
						Exception: "org.apache.hadoop.hbase.DoNotRetryIOException",
					}
				}
				return hbasefake.Fault{}
			})
			clean(t, "DOWNPOUR_STORE=hbase:"+fake.Address(), "DOWNPOUR_PUSHDOWN_LISTEN=127.0.0.1:0")
			ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
			defer stop()
			reader, logs := io.Pipe()
			done := make(chan error, 1)
			go func() {
				defer logs.Close()
				done <- run(ctx, nil, io.Discard, logs)
			}()

			var wrote strings.Builder
			for lines := bufio.NewScanner(reader); lines.Scan(); {
				fmt.Fprintln(&wrote, lines.Text())
				switch {
				case strings.Contains(lines.Text(), "pushdown server listens"):
					away.Store(false)
				case strings.Contains(lines.Text(), `msg="all tables may be read"`):
					stop()
				}
			}
			err := <-done
			if len(denied) == 0 && (err != nil || !strings.Contains(wrote.String(), `msg="all tables may be read"`)) {
				t.Errorf("got %v, want no error and a log of it; the log:\n%s", err, &wrote)
			}
			if len(denied) > 0 &&
				(!errors.Is(err, store.ErrDenied) || !strings.Contains(err.Error(), "DOWNPOUR_STORE=hbase:") ||
					!strings.Contains(wrote.String(), "the pushdown server ends")) {
				t.Errorf("got %v, want a right that is lacking; the log:\n%s", err, &wrote)
			}
		})
	}
}

// listening waits for a warning and the address in the program's log, and returns the address. It
// keeps reading, so that the program is not blocked.
func listening(t *testing.T, logs *io.PipeReader) string {
	t.Helper()
	address := make(chan string, 1)
	go func() {
		var text []byte
		b := make([]byte, 4096)
		for {
			n, err := logs.Read(b)
			text = append(text, b[:n]...)
			if m := regexp.MustCompile(
				`(?s)opentsdb.conf is read by gateways alone.*listens" address=(\S+)`).FindSubmatch(text); m != nil {
				select {
				case address <- string(m[1]):
				default:
				}
			}
			if err != nil {
				return
			}
		}
	}()
	select {
	case a := <-address:
		return a
	case <-time.After(5 * time.Minute):
		t.Fatal("the server does not listen")
		return ""
	}
}

func write(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
