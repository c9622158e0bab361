package hbase

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

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
