package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/websocket"

	"downpour/bench/peer"
)

// socket is a connection to a gateway's /api/ws.
type socket struct{ conn *websocket.Conn }

// stalledBuffer is how much the kernel keeps for a socket that reads nothing, in
// bytes: so little that its server notices at once.
const stalledBuffer = 4 << 10

// dial opens a socket; one that is to stall takes almost nothing in.
func dial(ctx context.Context, server *peer.Server, stalled bool) (*socket, error) {
	config, err := websocket.NewConfig(strings.Replace(server.URL, "http", "ws", 1)+"/api/ws", server.URL)
	if err != nil {
		return nil, err
	}
	config.Protocol = []string{"downpour.v1"}
	if stalled {
		config.Dialer = &net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
			var err error
			return errors.Join(c.Control(func(fd uintptr) {
				err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, stalledBuffer)
			}), err)
		}}
	}
	conn, err := config.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	return &socket{conn}, nil
}

func (s *socket) close() { s.conn.Close() }

// subscribe asks for a query, the body of POST /api/query.
func (s *socket) subscribe(id int, query string) error {
	return websocket.Message.Send(s.conn, fmt.Sprintf(`{"type":"subscribe","id":"%d","query":%s}`, id, query))
}

// message is what of a server's message tells values.
type message struct {
	Type    string
	ID      string
	Results []points
	Upserts []points
	Error   *struct{ Message string }
}

// points are those of one group.
type points struct{ DPS [][2]json.RawMessage }

// patience is how long a socket waits for a message; a heartbeat comes sooner.
const patience = 30 * time.Second

// receive returns the next message. An error of a subscription is one here.
func (s *socket) receive(ctx context.Context) (m message, err error) {
	stop := context.AfterFunc(ctx, func() { s.conn.SetReadDeadline(time.Now()) })
	defer stop()
	if err := s.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return m, err
	}
	if err := ctx.Err(); err != nil { // it may have ended before the deadline was set
		return m, err
	}
	var text []byte
	if err := websocket.Message.Receive(s.conn, &text); err != nil {
		return m, errors.Join(ctx.Err(), err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, err
	}
	if m.Error != nil {
		return m, errors.New(m.Error.Message)
	}
	return m, nil
}

// receiveFrom returns when each of so many subscriptions has had a message of
// this type.
func (s *socket) receiveFrom(ctx context.Context, subscriptions int, kind string) error {
	for seen := map[string]bool{}; len(seen) < subscriptions; {
		m, err := s.receive(ctx)
		if err != nil {
			return fmt.Errorf("%d of %d subscriptions have had a %s: %w", len(seen), subscriptions, kind, err)
		}
		if m.Type == kind {
			seen[m.ID] = true
		}
	}
	return nil
}
