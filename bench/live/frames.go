package live

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"time"

	"downpour/bench/peer"
	"downpour/bench/progress"
	"downpour/bench/report"
)

// FramesConfig says what Frames measures.
type FramesConfig struct {
	Server *peer.Server
	// Sockets are connections of their own, each with one of Plans queries.
	Sockets, Plans int
	// Every so many sockets one is of another kind than a reader, see kind; 0 is
	// none.
	StalledEvery, SlowEvery, HalfOpenEvery int
	// Long is how many points the answers have that stalled and slow sockets ask
	// for, 22 bytes each; 0 is 20,000.
	Long int
	// Puts of one point a plan each, one every so often whatever the sockets
	// do; 0 is one as soon as the last has been shown to all.
	Puts     int
	Every    time.Duration
	Name     string // of what is measured, in the report
	Progress *progress.Progress
}

// Validate names the first field that is wrong.
func (c FramesConfig) Validate() error {
	switch {
	case c.Sockets < 1:
		return fmt.Errorf("sockets: got %d, want at least 1", c.Sockets)
	case c.Plans < 1 || c.Plans > c.Sockets:
		return fmt.Errorf("plans: got %d, want 1 to the number of sockets, %d", c.Plans, c.Sockets)
	case c.Puts < 1:
		return fmt.Errorf("puts: got %d, want at least 1", c.Puts)
	case c.Long < 0:
		return fmt.Errorf("long: got %d points, want at least 0", c.Long)
	case c.Every != 0 && c.Every < time.Millisecond:
		return fmt.Errorf("every: got %s, want 0 or at least 1ms", c.Every)
	}

	for name, every := range map[string]int{
		"stalled": c.StalledEvery, "slow": c.SlowEvery, "half-open": c.HalfOpenEvery,
	} {
		// Each kind has a place of its own among so many, see kindOf.
		if every < 0 || every > 0 && every < int(kinds) {
			return fmt.Errorf("%s: got every %d, want 0 or at least %d", name, every, kinds)
		}
	}
	return nil
}

// kind is what a socket does with what it is sent.
type kind int

const (
	// reading takes every frame at once, and is measured.
	reading kind = iota
	// stalled asks for more than it takes and reads nothing.
	stalled
	// slow asks for a long answer and takes 64 KiB a second, whatever comes.
	slow
	// halfOpen asks for a plan, reads nothing and answers no ping, as one whose
	// network is gone; what it is sent is little.
	halfOpen
	kinds
)

// kindOf returns the kind of the socket of a number. The first of every so many is
// stalled, the second slow and the third half-open.
func (c FramesConfig) kindOf(socket int) kind {
	is := func(every int, k kind) bool { return every > 0 && socket%every == int(k)-1 }
	switch {
	case is(c.StalledEvery, stalled):
		return stalled
	case is(c.SlowEvery, slow):
		return slow
	case is(c.HalfOpenEvery, halfOpen):
		return halfOpen
	}
	return reading
}

// count is how many sockets are of a kind.
func (c FramesConfig) count(k kind) (n int) {
	for i := range c.Sockets {
		if c.kindOf(i) == k {
			n++
		}
	}
	return n
}

// FramesResult is what came of it.
type FramesResult struct {
	// Latency is from put to frame: its response from the moment at which a put
	// was due, its service from when it began.
	Latency report.Latency
	// Frames are the rounds shown, all sockets together, within this time.
	Frames int64
	Took   time.Duration
	// Before and With are the server's resident memory, without a socket and
	// with all of them after the last put, bytes; 0 of a server that somebody
	// else has started.
	Before, With int64
	// Slow is how many slow sockets there were, Complete how many of them had their
	// long answer whole and the last point.
	Slow, Complete int
}

// BytesPerSocket is the memory that each socket adds.
func (r FramesResult) BytesPerSocket(sockets int) int64 { return (r.With - r.Before) / int64(sockets) }

// Frames puts points and measures, at every socket that reads, the time until
// the first frame that shows each. Every one must see the last point, or it is an
// error.
func Frames(ctx context.Context, c FramesConfig) (result FramesResult, err error) {
	if err := c.Validate(); err != nil {
		return result, err
	}
	if err := allowFiles(c.Sockets + 1000); err != nil {
		return result, err
	}

	// A frame that never comes must end the run: this is far more than all puts and
	// sockets usually take.
	within := time.Duration(c.Puts)*max(c.Every, time.Second) +
		time.Duration(c.Sockets)*50*time.Millisecond + 3*time.Minute
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()

	r := newRounds(c, c.count(reading))
	if err := r.put(ctx, time.Now()); err != nil { // a metric must exist before anybody asks for it
		return result, err
	}
	if c.StalledEvery > 0 || c.SlowEvery > 0 { // they ask for a long answer
		if err := c.putLong(ctx); err != nil {
			return result, err
		}
	}

	if result.Before, err = c.resident(); err != nil {
		return result, err
	}
	all := newCrowd(ctx, c, r)
	defer all.close()

	if err := all.join(); err != nil {
		// err may only say that another socket's error has ended all.
		return result, cmp.Or(context.Cause(all.ctx), err)
	}
	began := time.Now()
	if err := all.measure(); err != nil {
		return result, err
	}

	// Every reader has shown every put by now, perhaps several in one frame.
	result.Frames, result.Took = int64(r.readers)*int64(c.Puts), time.Since(began)
	if result.With, err = c.resident(); err != nil {
		return result, err
	}
	result.Latency = all.latency()
	err = all.slow.Wait()
	result.Slow, result.Complete = c.count(slow), int(all.slowComplete.Load())
	return result, err
}

// resident returns the server's resident memory in bytes, 0 if somebody else has
// started it.
func (c FramesConfig) resident() (int64, error) {
	if c.Server.Process == nil {
		return 0, nil
	}
	m, err := c.Server.Process.Memory()
	return m.Resident, err
}

// longMetric is the series that stalled and slow sockets ask for.
const longMetric = "bench.live.long"

// longQuery asks for it.
var longQuery = fmt.Sprintf(`{"start":"2h-ago","msResolution":true,"queries":[{"metric":%q,"aggregator":"sum"}]}`,
	longMetric)

// putLong puts the series that stalled and slow sockets ask for, a point each ms.
func (c FramesConfig) putLong(ctx context.Context) error {
	points := c.Long
	if points == 0 {
		points = 20_000
	}
	from := time.Now().Add(-time.Hour).UnixMilli()
	const each = 2000 // points of one request
	for first := 0; first < points; first += each {
		var body bytes.Buffer
		for i := range min(each, points-first) {
			// A bracket opens the list, and a comma stands before each later point.
			fmt.Fprintf(&body, `%c{"metric":%q,"timestamp":%d,"value":%d,"tags":{"writer":"bench"}}`,
				"[,"[min(i, 1)], longMetric, from+int64(first+i), i)
		}
		body.WriteByte(']')
		if err := putJSON(ctx, c.Server, body.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
