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
	"time"

	"golang.org/x/sync/errgroup"

	"downpour/bench/peer"
	"downpour/bench/progress"
	"downpour/bench/workload"
)

// SendConfig says how a data set is put through a server's door.
type SendConfig struct {
	Server *peer.Server
	Data   workload.Devops
	// Format is workload.Telnet or workload.JSON (POST /api/put).
	Format workload.Format
	// Connections send side by side, each the series of its share in time
	// order. Default 2.
	Connections int
	// Batch is the points of one write or request. Default 1000.
	Batch    int
	Progress *progress.Progress
}

func (c SendConfig) withDefaults() SendConfig {
	if c.Connections <= 0 {
		c.Connections = 2
	}
	c.Connections = min(c.Connections, c.Data.Series())
	if c.Batch <= 0 {
		c.Batch = 1000
	}
	return c
}

// Payload is a data set spelled out for each connection.
type Payload struct {
	format workload.Format
	lanes  []iter.Seq[workload.Chunk]
	Points int
}

// Stream spells the data while it is sent, for data sets of any size.
func (c SendConfig) Stream() Payload {
	c = c.withDefaults()
	p := Payload{format: c.Format, Points: c.Data.Points()}
	for lane := range c.Connections {
		mine := func(series int) bool { return series%c.Connections == lane }
		p.lanes = append(p.lanes, c.Data.Text(c.Format, c.Batch, mine))
	}
	return p
}

// Spell spells the data beforehand, so that sending measures the receiver
// alone. It takes some 80 bytes of memory a point.
func (c SendConfig) Spell() Payload {
	p := c.Stream()
	for i, lane := range p.lanes {
		var all []workload.Chunk
		for chunk := range lane {
			all = append(all, workload.Chunk{Text: bytes.Clone(chunk.Text), Points: chunk.Points})
		}
		p.lanes[i] = slices.Values(all)
	}
	return p
}

// Send puts the payload and returns when the server has acknowledged all of it:
// over HTTP each request, by telnet with the close that follows a half-close.
// A line or request refused is an error. What an acknowledgement is worth is up
// to the server.
func (c SendConfig) Send(ctx context.Context, p Payload) (time.Duration, error) {
	c = c.withDefaults()
	start := time.Now()
	work, ctx := errgroup.WithContext(ctx)
	for _, lane := range p.lanes {
		work.Go(func() error {
			if p.format == workload.Telnet {
				return c.telnet(ctx, lane)
			}
			return c.post(ctx, lane)
		})
	}
	if err := work.Wait(); err != nil {
		return 0, fmt.Errorf("%s: %w", c.Server.Name, err)
	}
	return time.Since(start), nil
}

func (c SendConfig) telnet(ctx context.Context, lane iter.Seq[workload.Chunk]) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", c.Server.Telnet)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	said := make(chan error, 1)
	go func() { said <- complaints(conn) }()
	for chunk := range lane {
		if _, err := conn.Write(chunk.Text); err != nil {
			return errors.Join(err, <-said)
		}
		c.Progress.Add(int64(chunk.Points))
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	return <-said
}

// complaints reads what the server says until it closes: with puts alone, only
// errors.
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

// post has a connection of its own: closing those of a shared client may hit one
// that another lane is about to use.
func (c SendConfig) post(ctx context.Context, lane iter.Seq[workload.Chunk]) error {
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	for chunk := range lane {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Server.PutURL+"/api/put", bytes.NewReader(chunk.Text))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
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
		c.Progress.Add(int64(chunk.Points))
	}
	return nil
}

// Replace changes the text of a payload in memory, so that a test can send what
// a server must refuse.
func (p Payload) Replace(change func([]byte) []byte) {
	for i, lane := range p.lanes {
		var all []workload.Chunk
		for c := range lane {
			all = append(all, workload.Chunk{Text: change(c.Text), Points: c.Points})
		}
		p.lanes[i] = slices.Values(all)
	}
}
