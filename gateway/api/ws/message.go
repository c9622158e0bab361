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
	Format string          `json:"format"`
	Resume *live.Resume    `json:"resume"`
}

const (
	formatJSON  = "json"
	formatArrow = "arrow"
	maxID       = 256 // bytes
)

// readMessage parses and checks a message. The error is for the client; with it
// comes the id, when there is one to answer to.
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
		m.ID = nil
		return m, badRequest("The id is too long: want at most %d bytes", maxID)
	case m.Format != "" && m.Format != formatJSON && m.Format != formatArrow:
		return m, badRequest("Format %q is not known: want json or arrow", m.Format)
	}
	return m, nil
}

func badRequest(format string, args ...any) *live.Error {
	return &live.Error{Code: 400, Message: fmt.Sprintf(format, args...)}
}

// appendHead starts a server message: type, and id where there is one.
func appendHead(b []byte, kind live.Kind, id *string) []byte {
	b = append(append(append(b, `{"type":"`...), kind...), '"')
	if id != nil {
		quoted, _ := json.Marshal(*id) // a string always encodes
		b = append(append(b, `,"id":`...), quoted...)
	}
	return b
}

// errorMessage is a whole error message.
func errorMessage(id *string, e *live.Error) []byte {
	u := live.Update{Kind: live.KindError, Err: e}
	text, _ := u.JSON() // it needs no room of its own
	return append(appendHead(nil, live.KindError, id), text...)
}

var heartbeat = []byte(`{"type":"heartbeat"}`)
