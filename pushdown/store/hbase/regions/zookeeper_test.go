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
	"time"

	"downpour/pushdown/store"
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

// Who waits for an operation hears of each fault at once, and the error at its end has the last one.
func TestRetrier_told(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.CreateTable("t", []string{"t"})
	c.StopZooKeeper()
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil)
	errEnough := errors.New("enough is told")
	ctx = store.OnRetry(ctx, func(fault error) {
		if !errors.Is(fault, errZooKeeper) || !strings.HasPrefix(fault.Error(), `table "t": `) {
			t.Errorf("told of %v", fault)
		}
		cancel(errEnough)
	})
	err := c.r.get(ctx)
	if !errors.Is(err, errEnough) {
		t.Errorf("got %v, want %v", err, errEnough)
	}
	if !errors.Is(err, errZooKeeper) {
		t.Errorf("got %v, want %v", err, errZooKeeper)
	}
}
