package regions

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/hbasefake"
)

// A ZooKeeper that wants sessions to be authenticated is named as the cause, with what to
// set; no other fault of ZooKeeper is taken for it. The cluster is used once it wants that no
// more.
func TestZooKeeper_authenticated(t *testing.T) {
	c := start(t, hbasefake.Options{}, func(cfg *Config) { cfg.RetryTimeout = time.Nanosecond })
	c.CreateTable("t", []string{"t"})
	lookUp := func() error {
		return open(t, &c.cfg).get(c.ctx)
	}

	// What a real one of 3.8.4 answers, 00000001 0000000000000000 ffffff84, has this code.
	const requiresSASL = -124
	c.SetZooKeeperError(requiresSASL)
	err := lookUp()
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want %v", err, store.ErrUnavailable)
	}
	if !errors.Is(err, errZooKeeperSASL) {
		t.Errorf("got %v, want %v", err, errZooKeeperSASL)
	}
	for _, part := range []string{"ZooKeeper " + c.Address() + ": it wants sessions to be authenticated",
		"DOWNPOUR_STORE=hbase+rpc://"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want %q", err, part)
		}
	}

	// System error, connection loss, unsupported, no node, no rights, expired, authentication
	// failed, session moved, throttled, and codes whose digits are alike.
	for _, code := range []int32{-1, -4, -6, -101, -102, -112, -115, -118, -127, -12, -24, -1124, -1240, 124} {
		c.SetZooKeeperError(code)
		if err := lookUp(); !errors.Is(err, errZooKeeper) || errors.Is(err, errZooKeeperSASL) {
			t.Errorf("code %d: got %v, want an error of ZooKeeper without that reason", code, err)
		}
	}
	c.StopZooKeeper()
	ctx, cancel := context.WithTimeout(c.ctx, 100*time.Millisecond)
	defer cancel()
	c.ctx = ctx
	if err := lookUp(); err == nil || errors.Is(err, errZooKeeperSASL) {
		t.Errorf("nobody listens: got %v, want an error without that reason", err)
	}

	c.ctx = t.Context()
	c.SetZooKeeperError(0)
	if err := c.RestartZooKeeper(); err != nil {
		t.Fatal(err)
	}
	if err := lookUp(); err != nil {
		t.Errorf("it is as before: got %v", err)
	}
}

// A server of ZooKeeper whose name has no address does not keep others from being asked, and is logged once. When
// none has one, the error names them all.
func TestZooKeeper_nameless(t *testing.T) {
	var log bytes.Buffer
	var known atomic.Bool
	known.Store(true)
	c := start(t, hbasefake.Options{}, func(cfg *Config) {
		host, port, err := net.SplitHostPort(cfg.Quorum)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Quorum = "zk9.invalid:2181,zk1:" + port
		cfg.LookUpHost = func(_ context.Context, name string) ([]string, error) {
			if name == "zk1" && known.Load() {
				return []string{host}, nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
		}
		cfg.Calls.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	for range 3 {
		if _, err := c.r.locator.directory.lookUp(metaServer); err != nil {
			t.Errorf("one of two names has an address: %v", err)
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "zk9.invalid") {
		t.Errorf("logged %s, want one line that names zk9.invalid", &log)
	}
	known.Store(false)
	if _, err := c.r.locator.directory.lookUp(metaServer); !errors.Is(err, errZooKeeper) ||
		!strings.Contains(err.Error(), "lookup zk9.invalid") || !strings.Contains(err.Error(), "lookup zk1") {
		t.Errorf("no name has an address: %v, want an error that names both", err)
	}
}

// Dialling ZooKeeper ends with the store, and so does a connection, which is closed once.
func TestZooKeeper_dial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life := calls.NewLife()
		ours, theirs := net.Pipe()
		defer theirs.Close()
		closed, kept := &conn{Conn: ours}, &conn{Conn: ours}
		next := []*conn{closed, kept}
		z := newZKDirectory(&Config{Calls: &calls.Config{
			Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				if len(next) == 0 {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				nc := next[0]
				next = next[1:]
				return nc, nil
			},
		}}, life)
		first, err := z.dial(t.Context(), "tcp", "zk:2181")
		if err != nil {
			t.Fatal(err)
		}
		first.Close()
		if _, err := z.dial(t.Context(), "tcp", "zk:2181"); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, life.End)
		if _, err := z.dial(t.Context(), "tcp", "zk:2181"); !errors.Is(err, context.Canceled) {
			t.Errorf("at the end of the store: got %v", err)
		}
		synctest.Wait()
		if closed.closed != 1 || kept.closed != 1 {
			t.Errorf("closed %d and %d times, want each once", closed.closed, kept.closed)
		}
	})
}
