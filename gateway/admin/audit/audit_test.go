package audit

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// A text is cut between characters, after secrets are taken out.
func TestShown(t *testing.T) {
	full := strings.Repeat("x", Most)
	for _, k := range []struct{ text, secret, want string }{
		{"", "", ""},
		{full, "", full},
		{full + "y", "", full + "…"},
		{full[1:] + "ä", "", full[1:] + "…"},
		{"a=secret&b=secret", "secret", "a=[token]&b=[token]"},
		{full[7:] + "secret", "secret", full[7:] + "[token]"},
		{full[1:] + "secret", "secret", full[1:] + "[…"},
		// Two of them: the second is cut off, and moves to the front.
		{strings.Repeat("x", 290) + "secret" + "=secr", "secret", strings.Repeat("x", 290) + "[token]=[t…"},
		{"secret" + full[20:] + "secr", "secret", "[token]" + full[20:] + "[token]"},
		{"t=a%2Fb%2Bcdef&u=a\\/b+cdef", "a/b+cdef", "t=[token]&u=[token]"},
		{"x=sec", "secret", "x=sec"},
		{"secret", "", "secret"},
	} {
		if got := Shown(k.text, k.secret); got != k.want {
			t.Errorf("%q: got %q, want %q", k.text, got, k.want)
		}
	}
}

// A command has two lines, in which its arguments cannot be taken for others.
func TestCommand(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	c := &Command{
		Name:      "uid",
		Arguments: []string{"rename", "metrics", "a b", "", "c\nmsg=forged"},
		User:      "alice",
		Store:     "hbase:zk",
	}
	c.Begin(log)
	c.End(log, nil)
	c.End(log, errors.New("no region"))
	same := `,"command":"uid","arguments":"rename metrics \"a b\" \"\" \"c\\nmsg=forged\"","user":"alice",` +
		`"store":"hbase:zk"`
	want := `{"msg":"an administrative request"` + same + "}\n" +
		`{"msg":"an administrative request ended"` + same + `,"outcome":"done"}` + "\n" +
		`{"msg":"an administrative request ended"` + same + `,"outcome":"no region"}` + "\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}

// An act is found by its context, and a context without one takes what is recorded of it.
func TestOf(t *testing.T) {
	ctx, act := NewContext(context.Background())
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	if Of(within) != act || Of(context.Background()) == act {
		t.Error("the act of a context is another one")
	}
}
