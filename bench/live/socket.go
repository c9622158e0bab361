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

	"downpour/bench"
	"downpour/bench/peer"
)

// socket is a connection to a gateway's /api/ws. Messages are decoded as one
// stream, because the library gives frames, and a long message has many.
type socket struct {
	conn     *websocket.Conn
	messages *json.Decoder
	stop     func() bool // of what ends reading with the context
}

const (
	// smallBuffer is how much the kernel keeps for a socket that stalls or is
	// slow, in bytes: so little that its server notices at once.
	smallBuffer = 4 << 10
	// slowRate is what a slow socket takes, in bytes a second; a gateway ends
	// those that take less than 16 KiB.
	slowRate = 64 << 10
	// socketsPerAddress is how many sockets come from one address: a gateway bounds
	// them, and the ports of an address do.
	socketsPerAddress = 2000
)

// dial opens the socket of a number, which is of a kind and lasts until ctx ends.
func dial(ctx context.Context, server *peer.Server, number int, k kind) (*socket, error) {
	config, err := websocket.NewConfig(strings.Replace(server.URL, "http", "ws", 1)+"/api/ws", server.URL)
	if err != nil {
		return nil, err
	}
	config.Protocol = []string{"downpour.v1"}
	dialer := &net.Dialer{}
	// Many sockets come from several addresses, see socketsPerAddress. Any address of 127/8 is
	// this machine's.
	if ip := net.ParseIP(config.Location.Hostname()); ip != nil && ip.IsLoopback() && ip.To4() != nil {
		dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, byte(number/socketsPerAddress/250),
			byte(1+number/socketsPerAddress%250))}
	}

	if k == stalled || k == slow {
		dialer.Control = func(_, _ string, c syscall.RawConn) error {
			var set error
			err := c.Control(func(fd uintptr) {
				set = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, smallBuffer)
			})
			return errors.Join(err, set)
		}
	}

	config.Dialer = dialer
	conn, err := config.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	from := &incoming{ctx: ctx, conn: conn}
	if k == slow {
		from.rate = slowRate
	}

	stop := context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Now()) })
	return &socket{conn, json.NewDecoder(from), stop}, nil
}

// incoming is what comes to a socket.
type incoming struct {
	ctx  context.Context
	conn *websocket.Conn
	rate int // bytes a second; 0 is as they come
}

// Read takes what is there. With a rate it returns only after the time that so many bytes
// take at that rate.
func (i *incoming) Read(b []byte) (n int, err error) {
	if i.rate > 0 {
		// By quarters of a second: a longer pause could be taken for a stall.
		b = b[:min(len(b), i.rate/4)]
	}
	if err := i.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}

	// The end of ctx sets a deadline that has passed, see dial; the one above may have undone it.
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	n, err = i.conn.Read(b)
	if i.rate > 0 && !bench.Until(i.ctx, time.Now().Add(time.Duration(n)*time.Second/time.Duration(i.rate))) {
		return n, i.ctx.Err()
	}
	return n, err
}

func (s *socket) close() {
	s.stop()
	s.conn.Close()
}

// subscribe asks for a query, the body of POST /api/query.
func (s *socket) subscribe(id int, query string) error {
	return websocket.Message.Send(s.conn, fmt.Sprintf(`{"type":"subscribe","id":"%d","query":%s}`, id, query))
}

// message holds the fields of a server's message that are measured or checked.
type message struct {
	Type    string
	ID      string
	Results []points
	Upserts []points
	Error   *struct{ Message string }
}

// points are those of one group.
type points struct{ DPS [][2]json.RawMessage }

// patience is how long a socket waits for bytes; a heartbeat comes sooner.
const patience = 30 * time.Second

// receive returns the next message. An error of a subscription is one here.
func (s *socket) receive() (m message, err error) {
	if err := s.messages.Decode(&m); err != nil {
		return m, err
	}
	if m.Error != nil {
		return m, errors.New(m.Error.Message)
	}
	return m, nil
}

// receiveFrom returns when each of so many subscriptions has had a message of
// this type.
func (s *socket) receiveFrom(subscriptions int, kind string) error {
	for seen := map[string]bool{}; len(seen) < subscriptions; {
		m, err := s.receive()
		if err != nil {
			return fmt.Errorf("%d of %d subscriptions have had a %s: %w", len(seen), subscriptions, kind, err)
		}
		if m.Type == kind {
			seen[m.ID] = true
		}
	}
	return nil
}
