// Package audit words the log lines about administrative acts: what was asked, by whom, and how it
// ended. Requests, telnet and commands have the same two lines, so one search of the log finds all.
//
//	msg="an administrative request" method=POST path=/api/uid/rename body="{…}" token=deploy …
//	msg="an administrative request ended" … outcome=200
package audit

import (
	"context"
	"strings"
)

// The messages of the two lines. The first is logged before anything is done: it is there
// whatever becomes of the process.
const (
	Begun = "an administrative request"
	Ended = "an administrative request ended"
)

// Most bounds a text of a client's in a line, in bytes.
const Most = 300

// hidden stands in a line where a text has a secret.
const hidden = "[token]"

// Shown is a text of a client's as a line has it: its first bytes, whole characters, and no
// secret. The log itself escapes what breaks lines, and codes of terminals.
func Shown(text string, secrets ...string) string {
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, hidden)
		}
	}
	if len(text) > Most {
		return strings.ToValidUTF8(text[:Most], "") + "…"
	}
	return text
}

// Act is what is known of a request that may be an act of an administrator.
type Act struct {
	// Logged says that its first line is there.
	Logged bool
	// Body is the beginning of what was sent, as the lines show it.
	Body string
	// Err is why what was asked has failed after the answer had begun, whose status does not tell
	// it; nil if it has not.
	Err error
}

type actKey struct{}

// NewContext returns a context whose request may be an act, and what is known of it.
func NewContext(ctx context.Context) (context.Context, *Act) {
	act := new(Act)
	return context.WithValue(ctx, actKey{}, act), act
}

// Of returns what is known of the act that a context belongs to. Of any other context it is an
// Act that nobody looks at.
func Of(ctx context.Context) *Act {
	if act, ok := ctx.Value(actKey{}).(*Act); ok {
		return act
	}
	return new(Act)
}
