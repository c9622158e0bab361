package audit

import (
	"log/slog"
	"strconv"
	"strings"
	"unicode"
)

// Command is a command that changes something on the tables themselves, where no gateway has a
// line of it.
type Command struct {
	Name      string
	Arguments []string
	// User is whose process it is, by the operating system.
	User string
	// Store is the store's address.
	Store string
}

// Begin logs the first line.
func (c *Command) Begin(log *slog.Logger) { log.Info(Begun, c.attributes()...) }

// End logs the last line: the outcome is done, or an error.
func (c *Command) End(log *slog.Logger, err error) {
	outcome := "done"
	if err != nil {
		outcome = Shown(err.Error(), "")
	}
	log.Info(Ended, append(c.attributes(), "outcome", outcome)...)
}

func (c *Command) attributes() []any {
	words := make([]string, len(c.Arguments))
	for i, a := range c.Arguments {
		words[i] = a
		// Otherwise one argument could look like two.
		if a == "" || strings.ContainsFunc(a,
			func(r rune) bool { return r == '"' || unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
			words[i] = strconv.Quote(a)
		}
	}
	return []any{"command", c.Name, "arguments", Shown(strings.Join(words, " "), ""), "user", c.User, "store", c.Store}
}
