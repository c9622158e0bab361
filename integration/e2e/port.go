package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
)

// Ports come from below the range that Linux gives to outgoing connections
// (32768 and up), so that a port found free is not taken by a client socket
// before the server binds it.
const (
	firstPort = 15000
	lastPort  = 32000
)

// FreePort returns a TCP port of 127.0.0.1 on which nothing listens. No other call on this machine is given the
// port until this process ends, so that test runs may go on side by side.
func FreePort() (int, error) {
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		switch claimed, err := claim(port); {
		case err != nil:
			return 0, fmt.Errorf("free port: %w", err)
		case claimed && canListen(port):
			return port, nil
		}
	}
	return 0, fmt.Errorf("free port: 200 tries between %d and %d all taken", firstPort, lastPort)
}

// claims are the sockets of the ports that this process has claimed. They stay open: the kernel closes them
// when the process ends, however it ends.
var claims struct {
	sync.Mutex
	sockets []net.Listener
}

// claim takes a port before all others who call it, or reports that somebody has it. Its mark is a socket by
// an abstract name: each network has names of its own, as it has ports, and no file can be left behind.
func claim(port int) (bool, error) {
	l, err := net.Listen("unix", fmt.Sprintf("@downpour-test-port-%d", port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	claims.Lock()
	defer claims.Unlock()
	claims.sockets = append(claims.sockets, l)
	return true, nil
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
