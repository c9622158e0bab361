package ws

import (
	"encoding/json"
	"fmt"

	"downpour/gateway/live"
)

// clientMessage is what a client may send.
type clientMessage struct {
	Type   string          `json:"type"`
	ID     *string         `json:"id"`
	Query  json.RawMessage `json:"query"`
	Exp    json.RawMessage `json:"exp"` // in place of query
	Ops    bool            `json:"ops"` // in place of query: what operators see
	Format string          `json:"format"`
	Resume *live.Resume    `json:"resume"`
}

const (
	formatJSON  = "json"
	formatArrow = "arrow"
	maxID       = 256 // bytes
)

// readMessage parses and checks a client's message. The error is for the client. It
// is returned together with a message that has the id to answer to, if there is one.
func readMessage(data []byte) (*clientMessage, *live.Error) {
	m := &clientMessage{}
	if err := json.Unmarshal(data, m); err != nil {
		return m, badRequest("Unable to parse the message: %v", err)
	}

	switch {
	case m.Type != "subscribe" && m.Type != "unsubscribe":
		return m, badRequest("Message type %q is not known: want subscribe or unsubscribe", m.Type)
	case m.ID == nil || *m.ID == "":
		return m, badRequest("Message %s has no id: want a string of your choice", m.Type)
	case len(*m.ID) > maxID:
		m.ID = nil // too long to be repeated in the answer
		return m, badRequest("The id is too long: want at most %d bytes", maxID)
	case m.Format != "" && m.Format != formatJSON && m.Format != formatArrow:
		return m, badRequest("Format %q is not known: want json or arrow", m.Format)
	case m.Query != nil && m.Exp != nil:
		return m, badRequest("Message subscribe has both query and exp: want one of them")
	case m.Ops && (m.Query != nil || m.Exp != nil):
		return m, badRequest("Message subscribe has ops and a query: want one of them")
	}
	return m, nil
}

// request returns the hub's request for a message to subscribe.
func (m *clientMessage) request(cut func()) live.Request {
	r := live.Request{Query: m.Query, Millis: m.Format == formatArrow, Resume: m.Resume, Cut: cut}
	if m.Exp != nil {
		r.Query, r.Exp = m.Exp, true
	}
	return r
}

// badRequest returns a refusal with status 400.
func badRequest(format string, args ...any) *live.Error {
	return &live.Error{Code: 400, Message: fmt.Sprintf(format, args...)}
}

// appendHead appends the beginning of a server message: type, and id if there is one.
// The id is JSON, empty for none.
func appendHead(b []byte, kind live.Kind, id []byte) []byte {
	b = append(append(append(b, `{"type":"`...), kind...), '"')
	if len(id) > 0 {
		b = append(append(b, `,"id":`...), id...)
	}
	return b
}

// quote returns a string as JSON.
func quote(s string) []byte {
	quoted, _ := json.Marshal(s) // a string always encodes
	return quoted
}

// errorMessage returns a complete error message.
func errorMessage(id *string, e *live.Error) []byte {
	u := live.Update{Kind: live.KindError, Err: e}
	text, _ := u.JSON() // an update without an account reserves no memory
	var quoted []byte
	if id != nil {
		quoted = quote(*id)
	}
	return append(appendHead(nil, live.KindError, quoted), text...)
}

var heartbeat = []byte(`{"type":"heartbeat"}`)
