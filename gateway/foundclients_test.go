package gateway

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"downpour/pushdown/process/network/networktest"
	"downpour/pushdown/rpc/client"
)

// slowToClose is a connection that takes a minute to be closed.
type slowToClose struct{ net.Conn }

func (c slowToClose) Close() error {
	time.Sleep(time.Minute)
	return c.Conn.Close()
}

// While the connection to a server that has left is being closed, other servers come and go.
func TestFound_slowClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const left = "127.0.0.1:4260"
		var network networktest.Memory
		listener, err := network.Listen("tcp", left)
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		defer server.Stop()
		go func() { _ = server.Serve(listener) }()

		options := client.Options{Dial: func(ctx context.Context, kind, address string) (net.Conn, error) {
			conn, err := network.DialContext(ctx, kind, address)
			return slowToClose{conn}, err
		}}
		var f found
		defer f.close()
		f.change([]string{left}, options, time.Minute, nil)
		if _, err := f.used[left].Hello(t.Context()); err == nil {
			t.Fatal("a server without services has said what it is")
		}
		f.change(nil, options, time.Minute, nil)
		time.Sleep(time.Minute + time.Second)
		if f.mu.TryLock() {
			f.mu.Unlock()
		} else {
			t.Error("who looks for servers waits until a connection is closed")
		}
		time.Sleep(10 * time.Minute) // it is closed
	})
}
