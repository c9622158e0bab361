package hbase

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"downpour/pushdown/store/hbase/hbasefake"
)

// The ports of the fake's servers are none that the system gives away, so that they are free when a
// stopped server starts again. One that is not is waited for.
func TestFake_ports(t *testing.T) {
	c := hbasefake.For(t, hbasefake.Options{})
	given, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		t.Fatal(err)
	}
	first, err := strconv.Atoi(strings.Fields(string(given))[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range append(c.Nodes(), c.Address()) {
		_, port, _ := net.SplitHostPort(addr)
		if n, err := strconv.Atoi(port); err != nil || n >= first {
			t.Errorf("a server is at %s, want a port below %d", addr, first)
		}
	}

	c.StopServer(0)
	other, err := net.Listen("tcp", c.Nodes()[1])
	if err != nil {
		t.Fatal(err)
	}
	restarted := make(chan error, 1)
	go func() { restarted <- c.RestartServer(0) }()
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-restarted; err != nil {
		t.Errorf("restart: %v", err)
	}
}
