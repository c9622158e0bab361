package dashboard

import (
	"bytes"
	_ "embed"
	"fmt"
	"time"
)

// HostName is the name of the built-in dashboard of the gateway's own host.
const HostName = "host"

//go:embed host.json
var hostDocument []byte

// Host returns the built-in dashboard of a host: what package selfmetrics collects of it. host is
// its name as the tag host has it, of letters, digits and -_./ alone. Its range is one that has
// been filled at least by half since the first sample, up to an hour; a since of the zero value is
// long ago.
func Host(host string, since, now time.Time) []byte {
	from := "1h-ago"
	for _, minutes := range []int{1, 2, 3, 5, 10, 15, 30} {
		if now.Sub(since) <= time.Duration(minutes)*time.Minute {
			from = fmt.Sprintf("%dm-ago", minutes)
			break
		}
	}
	document := bytes.ReplaceAll(hostDocument, []byte("@host@"), []byte(host))
	return bytes.ReplaceAll(document, []byte("@from@"), []byte(from))
}
