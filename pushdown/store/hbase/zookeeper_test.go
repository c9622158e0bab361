package hbase

import (
	"context"
	"errors"
	"strings"
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
	c.fill(1, "")
	lookUp := func() error {
		st, err := Open(c.st.cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		_, err = st.Get(c.ctx, "t", "", [][]byte{[]byte("r0000")})
		return err
	}

	// What a real one of 3.8.4 answers, 00000001 0000000000000000 ffffff84, has this code.
	const requiresSASL = -124
	c.SetZooKeeperError(requiresSASL)
	err := lookUp()
	wantError(t, err, store.ErrUnavailable)
	wantError(t, err, errZooKeeperSASL)
	for _, part := range []string{"ZooKeeper " + c.Address() + ": it wants sessions to be authenticated", "DOWNPOUR_STORE=hbase+rpc://"} {
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
