// Package telnet speaks OpenTSDB's line protocol: put, version, help, exit,
// stats, dropcaches. Lines are ISO-8859-1, at most 1024 bytes, silent on
// success; each bad line is answered by one line.
//
// The protocol has no acknowledgement. Downpour gives one: the answer to
// version, and the close after a client's half-close, mean that every earlier
// line of the connection is durable or has had its error line.
// Source: PipelineFactory, RpcHandler.handleTelnetRpc, PutDataPointRpc.execute.
package telnet

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"time"

	"downpour/gateway/api/pace"
	"downpour/gateway/write"
	"downpour/pushdown/process/memory"
)

// MaxLine is the longest line that is read, in bytes.
const MaxLine = 1024

// Config is what connections need.
type Config struct {
	Writer *write.Writer
	Series *write.Series
	// Commands answers all commands but put, exit and auth; the words include
	// the command. An unknown command answers ok = false.
	Commands func(ctx context.Context, words []string) (answer string, ok bool)
	// Authorize checks the token of an auth line and returns what it allows;
	// nil needs no auth line.
	Authorize func(token string) (Rights, bool)
	// ReadOnly refuses puts.
	ReadOnly bool
	// Memory is what connections reserve large buffers from.
	Memory *memory.Pool
	Log    *slog.Logger
	// Idle ends a connection that sends nothing. Default 5 min.
	Idle time.Duration
	// CountPuts is told of lines taken and refused.
	CountPuts func(ok, bad int)
}

// Rights is what a token allows on this door.
type Rights struct{ Read, Write, Admin bool }

// Server serves connections.
type Server struct{ cfg Config }

// NewServer fills in defaults.
func NewServer(cfg Config) *Server {
	if cfg.Idle == 0 {
		cfg.Idle = 5 * time.Minute
	}
	if cfg.CountPuts == nil {
		cfg.CountPuts = func(int, int) {}
	}
	return &Server{cfg: cfg}
}

// lastAnswers is how long a client has to take its last answers once the gateway
// stops.
const lastAnswers = 10 * time.Second

// Serve reads lines until the client or ctx ends the connection, and closes it.
// A client that does not read its answers is ended below, by package pace: nc
// must be of pace.Listen.
func (s *Server) Serve(ctx context.Context, nc net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		nc.SetReadDeadline(time.Unix(1, 0))
		nc.SetWriteDeadline(time.Now().Add(lastAnswers))
	})
	defer stop()
	out := &answers{nc: nc}
	c := &conn{Server: s, nc: nc, ctx: ctx, account: s.cfg.Memory.Open(memory.Write), lost: out, out: bufio.NewWriterSize(out, 4<<10)}
	defer c.account.Close()
	c.begin()
	if s.cfg.Authorize == nil {
		c.rights = Rights{true, true, true}
	}
	err := c.runRecovered()
	if err != nil && !errors.Is(err, io.EOF) && s.cfg.Log != nil {
		s.cfg.Log.Debug("telnet connection ended", "remote", nc.RemoteAddr(), "err", err)
	}
	if out.err != nil || errors.Is(err, errPanic) {
		abort(nc)
		return
	}
	nc.Close()
}

// errPanic marks a connection that ended by a fault of ours.
var errPanic = errors.New("panic")

// runRecovered keeps the process alive when a line makes it panic.
func (c *conn) runRecovered() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errPanic
			if c.cfg.Log != nil {
				c.cfg.Log.Error("a telnet connection panicked", "panic", p, "stack", string(debug.Stack()))
			}
		}
	}()
	return c.run()
}

// abort resets a connection. A close in good order would tell the client that
// every line is durable or has had its error line; this says that it is not.
func abort(nc net.Conn) {
	if a, ok := nc.(interface{ Abort() error }); ok {
		a.Abort()
		return
	}
	pace.ResetOnClose(nc)
	nc.Close()
}

// answers are what a connection is told.
type answers struct {
	nc  net.Conn
	err error // of the first write that failed: answers are lost
}

// Write passes on, and notes a failure.
func (w *answers) Write(b []byte) (n int, err error) {
	if n, err = w.nc.Write(b); err != nil {
		w.err = err
	}
	return n, err
}

// conn is one connection.
type conn struct {
	*Server
	account *memory.Account
	nc      net.Conn
	ctx     context.Context
	in      *bufio.Reader
	source  source // below in
	out     *bufio.Writer
	lost    *answers // below out
	rights  Rights
	pending []pendingPuts
	key     []byte
	words   [][]byte
	point   write.Point
	counted struct{ ok, bad int } // lines that CountPuts has not been told of
}

// pendingPuts counts this connection's lines in one batch.
type pendingPuts struct {
	batch *write.Batch
	lines int
}

// errExit ends a connection at the client's wish.
var errExit = errors.New("exit")

func (c *conn) run() error {
	defer c.tell()
	for {
		line, err := c.readLine()
		if errors.Is(err, errTooLong) {
			c.refuse("put: illegal argument: " + errTooLong.Error())
			continue
		}
		if err == nil {
			err = c.handle(line)
		}
		if err != nil {
			c.awaitCommits(true)
			c.out.Flush()
			if errors.Is(err, errExit) {
				return nil
			}
			return err
		}
	}
}

// catchUp does what need not be done line by line, before more input is waited
// for: within a line, if part of one is held. It returns the error by which
// answers were lost.
func (c *conn) catchUp(within bool) error {
	c.tell()
	c.awaitCommits(false)
	if !within {
		c.out.Flush()
	}
	return c.lost.err
}

// tell counts lines where others see it.
func (c *conn) tell() {
	n := c.counted
	c.counted.ok, c.counted.bad = 0, 0
	if n.ok > 0 || n.bad > 0 {
		c.cfg.CountPuts(n.ok, n.bad)
	}
}

// awaitCommits answers for batches that are done; with wait, for all.
func (c *conn) awaitCommits(wait bool) {
	done := 0
	for _, p := range c.pending {
		// Not c.ctx: also when the gateway stops, each line gets its answer.
		// A batch ends by itself within the writer's timeout.
		ctx := context.Background()
		if !wait {
			ctx = ended
		}
		err := p.batch.Wait(ctx)
		if !wait && errors.Is(err, context.Canceled) {
			break
		}
		if err != nil {
			c.storageFailed(p.lines, err)
		}
		done++
	}
	c.pending = c.pending[done:]
}

// ended is a context that is over: Wait with it only looks.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()
