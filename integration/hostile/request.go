package hostile

import (
	"fmt"
	"strings"
	"time"
)

// Door is a protocol of the one port.
type Door string

// The doors of a gateway.
const (
	HTTP   Door = "http"
	Telnet Door = "telnet"
	Socket Door = "websocket"
)

// Manner is how a client sends and reads.
type Manner string

// The manners of clients. All but the first two leave after Request.Stay at the
// latest, and get no answer that could be judged.
const (
	Whole      Manner = "whole"      // sends everything and reads to the end
	HalfClosed Manner = "halfclosed" // closes its own side behind the request, and reads to the end
	Slow       Manner = "slow"       // sends byte by byte
	Stops      Manner = "stops"      // sends the first half and then nothing
	Leaves     Manner = "leaves"     // closes at once behind the request
	Unread     Manner = "unread"     // reads nothing
)

// Request is one thing that a client does, on a connection of its own.
type Request struct {
	Number int
	Kind   string // of the draw, for counts: query, put, …
	Door   Door
	Manner Manner
	// Wire is what is sent first: an HTTP request whole, telnet lines, or the
	// upgrade to a WebSocket.
	Wire []byte
	// Messages are text messages over the WebSocket, sent one behind the other.
	Messages []string
	// Stay is how long the client stays, unless it is answered first.
	Stay time.Duration
	// Points are found afterwards if the answer is a success: a status of 2xx, or
	// lines of telnet that are not answered.
	Points []Point
	// Exact says that the answer depends on nothing but the world's rows: any
	// server over them gives the same. Arrow says its form.
	Exact, Arrow bool
}

// Point is one that a request puts.
type Point struct {
	Metric, Writer string // the one tag is writer
	Time           int64  // s
	Value          int64
}

// Judged reports whether the request waits for its answer.
func (q *Request) Judged() bool { return q.Manner == Whole || q.Manner == HalfClosed }

// shownBytes is how much of a request String shows.
const shownBytes = 600

// String is the request in a line, cut where it is long.
func (q *Request) String() string {
	text := string(q.Wire)
	for _, m := range q.Messages {
		text += " ▸ " + m
	}
	length := len(text)
	if length > shownBytes {
		text = text[:shownBytes] + "…"
	}
	text = strings.NewReplacer("\r\n", " ⏎ ", "\n", " ⏎ ").Replace(text)
	return fmt.Sprintf("request %d, %s %s, %d bytes: %q", q.Number, q.Kind, q.Manner, length, text)
}
