// Package audit words the log lines about administrative acts: what was asked, by whom, and how it
// ended. Requests, telnet and commands have the same two lines, so one search of the log finds all.
//
//	msg="an administrative request" method=POST path=/api/uid/rename body="{…}" token=deploy …
//	msg="an administrative request ended" … outcome=200
package audit

import (
	"context"
	"net/url"
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

// Shown is a text of a client's as a line has it: its first bytes, whole characters, and without the secret, a
// token, in the spellings of parameters and of JSON. The log itself escapes what breaks lines, and codes of terminals.
func Shown(text, secret string) string {
	// Of a body one byte more than this is read at most: there was more of it.
	long := len(text) > Most+len(secret)
	if secret != "" {
		for _, s := range []string{secret, url.QueryEscape(secret), strings.ReplaceAll(secret, "/", `\/`)} {
			text = strings.ReplaceAll(text, s, hidden)
			text = withoutBeginning(text, s)
		}
	}
	if len(text) > Most {
		text, long = strings.ToValidUTF8(text[:Most], ""), true
	}
	if long {
		text += "…"
	}
	return text
}

// withoutBeginning hides the beginning of a secret at the end of a text, whose rest was cut off.
func withoutBeginning(text, secret string) string {
	for n := len(secret) - 1; n >= leastBeginning; n-- {
		if rest, found := strings.CutSuffix(text, secret[:n]); found {
			return rest + hidden
		}
	}
	return text
}

// leastBeginning is how many bytes of a secret are more than chance.
const leastBeginning = 4

// Act is what is known of a request that may be an act of an administrator.
type Act struct {
	// Logged says that its first line is there.
	Logged bool
	// Body is the beginning of what was sent, as the lines show it.
	Body string
	// Err is why the request has failed after the answer had begun, whose status does not say
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
