package live

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"

	"downpour/bench/peer"
	"downpour/bench/workload"
)

// wire is an HTTP server on loopback that sends as many bytes as it is asked
// for, from memory: what no answer of that length can be quicker than.
type wire struct {
	server *http.Server
	served sync.WaitGroup
	client *peer.Server
}

// pieceBytes is how much it writes at once, as much as a column of Arrow has.
const pieceBytes = 512 << 10

// newWire starts the server on a free port. A request's path is the number of bytes.
func newWire() (*wire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	piece := make([]byte, pieceBytes)
	handler := func(w http.ResponseWriter, r *http.Request) {
		left, err := strconv.ParseInt(r.URL.Path[1:], 10, 64)
		for ; err == nil && left > 0; left -= pieceBytes {
			_, err = w.Write(piece[:min(left, pieceBytes)])
		}
	}

	w := &wire{
		server: &http.Server{Handler: http.HandlerFunc(handler)},
		client: peer.At("wire", "http://"+l.Addr().String()),
	}
	w.served.Go(func() { w.server.Serve(l) })
	return w, nil
}

// copy asks for so many bytes and throws them away.
func (w *wire) copy(ctx context.Context, bytes int64) error {
	n, err := w.client.Copy(ctx, workload.Query{Path: fmt.Sprintf("/%d", bytes)}, "", io.Discard)
	if err == nil && n != bytes {
		err = fmt.Errorf("wire: got %d bytes, want %d", n, bytes)
	}
	return err
}

func (w *wire) close() {
	w.server.Close()
	w.served.Wait()
}
