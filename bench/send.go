package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"downpour/bench/peer"
	"downpour/bench/progress"
	"downpour/bench/workload"
)

// SendConfig says how a data set is put to a server.
type SendConfig struct {
	Server *peer.Server
	Data   workload.Data
	// Format is workload.Telnet, workload.JSON (POST /api/put) or workload.RemoteWrite.
	Format workload.Format
	// Connections is how many connections send at the same time, each a part of the
	// series in time order. Default 2.
	Connections int
	// Batch is the number of points in a write or request. Default 1000.
	Batch    int
	Progress *progress.Progress
	// Wanted says which series are sent; nil is all.
	Wanted func(series int) bool
	// Sent counts the points that were sent; nil counts nothing.
	Sent *atomic.Int64
}

// withDefaults fills in what is not set.
func (c SendConfig) withDefaults() SendConfig {
	if c.Connections <= 0 {
		c.Connections = 2
	}
	// A connection without a series would have nothing to send.
	c.Connections = min(c.Connections, c.Data.Series())
	if c.Batch <= 0 {
		c.Batch = 1000
	}
	return c
}

// count counts points that were sent.
func (c SendConfig) count(points int) {
	c.Progress.Add(int64(points))
	if c.Sent != nil {
		c.Sent.Add(int64(points))
	}
}

// Payload is a data set as text, divided into parts, one for each connection.
type Payload struct {
	format workload.Format
	parts  []iter.Seq[workload.Chunk]
	Points int
}

// Stream makes the text while it is sent, for data sets of any size.
func (c SendConfig) Stream() Payload {
	c = c.withDefaults()
	p := Payload{format: c.Format, Points: c.Data.Points()}
	for part := range c.Connections {
		mine := func(series int) bool { return series%c.Connections == part && (c.Wanted == nil || c.Wanted(series)) }
		p.parts = append(p.parts, c.Data.Text(c.Format, c.Batch, mine))
	}
	return p
}

// Spell makes the text beforehand, so that Send measures the server alone. It takes
// some 80 bytes of memory a point.
func (c SendConfig) Spell() Payload {
	p := c.Stream()
	for i, part := range p.parts {
		var all []workload.Chunk
		for chunk := range part {
			all = append(all, workload.Chunk{Text: bytes.Clone(chunk.Text), Points: chunk.Points})
		}
		p.parts[i] = slices.Values(all)
	}
	return p
}

// Paced returns the payload with chunks that come when they are due, at so many points a
// second for each part from its first chunk on, until ctx ends.
func (p Payload) Paced(ctx context.Context, perSecond int) Payload {
	paced := Payload{format: p.format, Points: p.Points}
	for _, part := range p.parts {
		paced.parts = append(paced.parts, func(yield func(workload.Chunk) bool) {
			began, points := time.Now(), 0
			for chunk := range part {
				due := began.Add(time.Duration(points) * time.Second / time.Duration(perSecond))
				if !Until(ctx, due) || !yield(chunk) {
					return
				}
				points += chunk.Points
			}
		})
	}
	return paced
}

// Send puts the payload and returns when the server has acknowledged all of it:
// over HTTP each request, by telnet with the close that follows a half-close.
// A line or request refused is an error. What an acknowledgement is worth is up
// to the server.
func (c SendConfig) Send(ctx context.Context, p Payload) (time.Duration, error) {
	c = c.withDefaults()
	start := time.Now()
	work, ctx := errgroup.WithContext(ctx)
	for _, part := range p.parts {
		work.Go(func() error {
			if p.format == workload.Telnet {
				return c.telnet(ctx, part)
			}
			return c.post(ctx, part, p.format)
		})
	}

	if err := work.Wait(); err != nil {
		return 0, fmt.Errorf("%s: %w", c.Server.Name, err)
	}
	return time.Since(start), nil
}

// telnet sends a part over one connection, and returns when the server has closed it.
func (c SendConfig) telnet(ctx context.Context, part iter.Seq[workload.Chunk]) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", c.Server.Telnet)
	if err != nil {
		return err
	}
	defer conn.Close()

	defer context.AfterFunc(ctx, func() { conn.Close() })()

	// Unread complaints would fill the connection, and the server would wait for us.
	said := make(chan error, 1)
	go func() { said <- complaints(conn) }()

	for chunk := range part {
		if _, err := conn.Write(chunk.Text); err != nil {
			// A server that closes says why before.
			return errors.Join(err, <-said)
		}
		c.count(chunk.Points)
	}

	// After a half-close the server answers what is left, and closes.
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	return <-said
}

// complaints reads what the server writes until it closes the connection. A server answers
// only those puts that it refuses, so each line is an error.
func complaints(conn net.Conn) error {
	lines, first, n := bufio.NewScanner(conn), "", 0
	for ; lines.Scan(); n++ {
		if n == 0 {
			first = lines.Text()
		}
	}

	if n > 0 {
		return fmt.Errorf("%d lines refused, the first with %q", n, first)
	}
	return lines.Err()
}

// post has an HTTP client of its own: closing the idle connections of a shared client
// may hit one that another part is about to use.
func (c SendConfig) post(ctx context.Context, part iter.Seq[workload.Chunk], format workload.Format) error {
	url, kind, encoding := c.Server.PutURL+"/api/put", "application/json", ""
	if format == workload.RemoteWrite { // VictoriaMetrics has it under this path, too
		url, kind, encoding = c.Server.URL+"/prometheus/api/v1/write", "application/x-protobuf", "snappy"
	}
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()

	for chunk := range part {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(chunk.Text))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", kind)
		if encoding != "" {
			req.Header.Set("Content-Encoding", encoding)
		}

		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return err
		}

		if resp.StatusCode/100 != 2 {
			return fmt.Errorf("put: status %d: %.200s", resp.StatusCode, body)
		}
		c.count(chunk.Points)
	}

	return nil
}
