package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports come from below the range that Linux gives to outgoing connections
// (32768 and up), so that a port found free is not taken by a client socket
// before the server binds it.
const (
	firstPort = 15000
	lastPort  = 32000
)

var given = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// FreePort returns a TCP port of 127.0.0.1 on which nothing listens. It never
// returns the same port twice in one process; another process may still take
// it before it is used.
func FreePort() (int, error) {
	given.Lock()
	defer given.Unlock()
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if given.ports[port] || !canListen(port) {
			continue
		}
		given.ports[port] = true
		return port, nil
	}
	return 0, fmt.Errorf("free port: 200 tries between %d and %d all taken", firstPort, lastPort)
}

func canListen(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// freePorts returns n different free ports.
func freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		ports[i] = port
	}
	return ports, nil
}
