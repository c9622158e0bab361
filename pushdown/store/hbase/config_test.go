package hbase

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"downpour/pushdown/process/logtest"

	"github.com/google/go-cmp/cmp"
)

// Addresses are completed, and those that cannot be used are left out, however the configuration was made.
func TestConfig_addresses(t *testing.T) {
	for want, c := range map[string]Config{
		`"zk1:2181,zk2:1" "/hbase" []`: {Quorum: " zk1 ,zk:0, zk2:1"},
		`"zk1:2181" "/other" []`:       {Quorum: "zk1/hbase", Root: "/other"},
		`"" "" ["a:1" "[::1]:2"]`:      {Nodes: []string{"a:1", "b:0", "c", "[::1]:2"}},
	} {
		got, err := c.complete()
		if text := fmt.Sprintf("%q %q %q", got.Quorum, got.Root, got.Nodes); text != want || err != nil {
			t.Errorf("got %s, %v, want %s", text, err, want)
		}
	}
}

// What is left out of the addresses is logged.
func TestOpen_unusable(t *testing.T) {
	logs := new(logtest.Log)
	st, err := Open(Config{Quorum: "zk:1", Unusable: []error{errors.New("no port")},
		Logger: slog.New(slog.NewTextHandler(logs, nil))})
	if err != nil {
		t.Fatal(err)
	}
	st.Close()
	if text := logs.String(); !strings.Contains(text, "no port") || !strings.Contains(text, "DOWNPOUR_STORE") {
		t.Errorf("got %q, want the variable and its fault", text)
	}
}

// A time that is not set is the default that its comment names, and one that is set stays.
func TestConfig_times(t *testing.T) {
	times := func(c Config) map[string]time.Duration {
		return map[string]time.Duration{
			"dial": c.DialTimeout, "ZooKeeper": c.ZooKeeperTimeout, "RPC": c.RPCTimeout, "write": c.WriteTimeout,
			"probe": c.ProbeAfter, "retry": c.RetryTimeout, "version": c.VersionTimeout,
		}
	}
	got, err := Config{Quorum: "zk:2181"}.complete()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]time.Duration{
		"dial": 5 * time.Second, "ZooKeeper": 10 * time.Second, "RPC": time.Minute, "write": 3 * time.Minute,
		"probe": 3 * time.Second, "retry": time.Minute, "version": time.Second,
	}, times(got)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	set := Config{Quorum: "zk:2181", DialTimeout: 1, ZooKeeperTimeout: 2, RPCTimeout: 3, WriteTimeout: 4, ProbeAfter: 5,
		RetryTimeout: 6, VersionTimeout: 7}
	if got, err = set.complete(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(times(set), times(got)); diff != "" {
		t.Errorf("those that are set: -want +got\n%s", diff)
	}
}
