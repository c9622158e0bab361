// Package telnet speaks OpenTSDB's line protocol: put, rollup, histogram, version,
// help, exit, stats, dropcaches. Lines are ISO-8859-1, at most 64 KiB, silent on
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

	"downpour/gateway/admin/putlog"
	"downpour/gateway/api/pace"
	"downpour/gateway/write"
	"downpour/pushdown/process/memory"
)

// MaxLine is the longest line that is read, in bytes.
const MaxLine = 64 << 10

// Config is what connections need.
type Config struct {
	Writer *write.Writer
	// Rollups takes the values of rollup lines.
	Rollups *write.Rollups
	// Commands answers all commands except put, exit and auth. The first word is the
	// command. ok is false for an unknown one.
	Commands func(ctx context.Context, words []string) (answer string, ok bool)
	// Authorize checks the token of an auth line and returns what it allows. If it
	// is nil, connections may do everything without an auth line.
	Authorize func(token string) (Rights, bool)
	// ReadOnly makes connections refuse puts.
	ReadOnly bool
	// Memory is the budget of large buffers.
	Memory *memory.Pool
	Log    *slog.Logger
	// Idle ends a connection that sends nothing. Default 5 min.
	Idle time.Duration
	// CountPuts is called with numbers of accepted and refused lines.
	CountPuts func(ok, bad int)
	// PutLog, if set, gets refused lines.
	PutLog *putlog.Log
}

// Rights is what a token allows.
type Rights struct {
	Read, Write, Admin bool
	Name               string // of the token, for the log
}

// Server serves connections.
type Server struct{ cfg Config }

// NewServer returns a server, with defaults for what cfg leaves out.
func NewServer(cfg Config) *Server {
	if cfg.Idle == 0 {
		cfg.Idle = 5 * time.Minute
	}
	if cfg.CountPuts == nil {
		cfg.CountPuts = func(int, int) {}
	}
	return &Server{cfg: cfg}
}

// lastAnswerTime is how long a client has to read its last answers once the gateway
// stops.
const lastAnswerTime = 10 * time.Second

// Serve reads lines until the client or ctx ends the connection, and closes it. nc
// must come from pace.Listen, which ends the connection of a client that does not
// read its answers.
func (s *Server) Serve(ctx context.Context, nc net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		nc.SetReadDeadline(time.Unix(1, 0)) // in the past: it ends a read immediately
		nc.SetWriteDeadline(time.Now().Add(lastAnswerTime))
	})
	defer stop()

	out := &answerWriter{nc: nc}
	c := &conn{
		Server:   s,
		nc:       nc,
		ctx:      ctx,
		account:  s.cfg.Memory.Open(memory.Write),
		resolver: s.cfg.Writer.Resolver(write.TelnetSpelling),
		answers:  out,
		out:      bufio.NewWriterSize(out, 4<<10),
	}
	defer c.account.Close()
	c.initBuffer()
	if s.cfg.Authorize == nil {
		c.rights = Rights{Read: true, Write: true, Admin: true}
	}

	err := c.runRecovered()
	if err != nil && err != io.EOF && s.cfg.Log != nil {
		s.cfg.Log.Debug("telnet connection ended", "remote", nc.RemoteAddr(), "err", err)
	}
	// A close in good order would acknowledge every line, but answers were lost, or a line
	// has ended in a panic.
	if out.err != nil || errors.Is(err, errPanic) {
		abort(nc)
		return
	}
	nc.Close()
}

// errPanic is returned when a line has made its connection panic.
var errPanic = errors.New("panic")

// runRecovered is run, but turns a panic into errPanic, so that it ends only this
// connection.
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

// abort resets a connection. A regular close would mean to the client that every line is durable or
// has had its error line; a reset means that this is not so.
func abort(nc net.Conn) {
	if a, ok := nc.(interface{ Abort() error }); ok {
		a.Abort()
		return
	}
	pace.ResetOnClose(nc)
	nc.Close()
}

// answerWriter writes answers to a connection.
type answerWriter struct {
	nc  net.Conn
	err error // of a write that failed: answers are lost
}

// Write writes b and keeps the error.
func (w *answerWriter) Write(b []byte) (n int, err error) {
	if n, err = w.nc.Write(b); err != nil {
		w.err = err
	}
	return n, err
}

// conn is one connection.
type conn struct {
	*Server
	account  *memory.Account
	nc       net.Conn
	ctx      context.Context
	in       *bufio.Reader
	source   source // from which in reads
	out      *bufio.Writer
	answers  *answerWriter // to which out writes
	rights   Rights
	pending  []pendingPuts
	resolver *write.Resolver
	line     []byte // that is handled
	words    [][]byte
	point    write.Point
	ahead    write.Point           // of a later line, see parseAhead
	prepared int                   // puts after this one whose names are prepared
	counted  struct{ ok, bad int } // lines not yet reported to CountPuts
}

// pendingPuts counts this connection's lines in one batch.
type pendingPuts struct {
	command string // of the lines
	batch   *write.Batch
	lines   int
}

// errExit is returned when the connection is to be closed after the line: by the
// command exit, or a failed auth.
var errExit = errors.New("exit")

// run executes lines until the connection ends.
func (c *conn) run() error {
	defer c.flushCounts()
	for {
		line, err := c.readLine()
		var long *longError
		if errors.As(err, &long) {
			c.refuse("put: illegal argument: " + long.Error())
			c.logRefused("put", "long line", long, 1, func() string { return long.begin })
			continue
		}

		if err == nil {
			err = c.handle(line)
		}
		if err != nil {
			// The client gets the answer to every line that it has sent.
			c.awaitCommits(everyBatch)
			c.out.Flush()
			if errors.Is(err, errExit) {
				return nil
			}
			return err
		}
	}
}

// catchUp does the work that need not be done for every line, before the connection
// waits for more input: it counts, answers and flushes. With midLine set, when the
// first part of a line has arrived, it does not flush: more input is about to come. It
// returns the error by which answers were lost.
func (c *conn) catchUp(midLine bool) error {
	c.flushCounts()
	c.awaitCommits(doneBatches)
	if !midLine {
		c.out.Flush()
	}
	return c.answers.err
}

// flushCounts passes the counts of lines on to CountPuts.
func (c *conn) flushCounts() {
	n := c.counted
	c.counted.ok, c.counted.bad = 0, 0
	if n.ok > 0 || n.bad > 0 {
		c.cfg.CountPuts(n.ok, n.bad)
	}
}

// awaited is the pending batches for which awaitCommits waits.
type awaited bool

const (
	doneBatches awaited = false // none: it stops at the first that is not done
	everyBatch  awaited = true
)

// awaitCommits writes the error lines of pending batches, in their order.
func (c *conn) awaitCommits(which awaited) {
	done := 0
	for _, p := range c.pending {
		// Not c.ctx, because each line gets its answer also when the gateway stops. A batch ends
		// within the writer's timeout anyway.
		ctx := context.Background()
		if which == doneBatches {
			ctx = ended // Wait returns immediately, with context.Canceled if the batch is not done
		}
		err := p.batch.Wait(ctx)
		if which == doneBatches && errors.Is(err, context.Canceled) {
			break
		}

		if err != nil {
			c.storageFailed(p.command, p.lines, err)
		}
		done++
	}
	c.pending = c.pending[done:]
}

// ended is a context that is over: with it Batch.Wait returns immediately.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()
