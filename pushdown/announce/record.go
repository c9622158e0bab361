package announce

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"downpour/pushdown/process/settings"
	"downpour/pushdown/rpc/auth"
	"downpour/pushdown/rpc/proof"
)

// The keys of announcements are in [firstRow, afterRows); column is their qualifier.
const (
	firstRow  = "pushdown/"
	afterRows = "pushdown0"
	column    = "announcement"
)

// Announcement is what a pushdown server says of itself.
type Announcement struct {
	Address string   `json:"address"` // host:port, where gateways dial it
	Beside  string   `json:"beside"`  // the region server next to it, "" for none
	Version string   `json:"version"` // of the program
	Table   string   `json:"table"`   // of data, which it reads
	Rollups []string `json:"rollups,omitempty"`
	// Instance is a random name of the process, and Sequence counts its announcements.
	Instance string `json:"instance"`
	Sequence uint64 `json:"sequence"`
}

// maxValue bounds the bytes of a row.
const maxValue = 8 << 10

// ErrUnprovable is returned where no server could prove who it is.
var ErrUnprovable = errors.New("gateways that find pushdown servers, and servers that are found, prove who they are: " +
	"want a token of scope admin in DOWNPOUR_TOKEN_FILE, the same in both, or mutual TLS (DOWNPOUR_PUSHDOWN_CA)")

// Keys returns a function that returns the keys of the admin tokens of a file as it is then. The error is an
// ErrUnprovable: it has none now, and there is no mutual TLS.
func Keys(tokens *auth.Tokens, certified bool) (func() ([]proof.Key, error), error) {
	if len(tokens.Admins()) == 0 && !certified {
		return nil, ErrUnprovable
	}
	return func() ([]proof.Key, error) { return proof.Keys(tokens.Admins()) }, nil
}

// Why an announcement is ignored.
var (
	errUnreadable = errors.New("it cannot be read")
	errMoved      = errors.New("it is in the row of another server")
	errUnsigned   = errors.New("it is not signed by an admin token of this gateway")
)

// rowKey is the key of a process's row.
func (a *Announcement) rowKey() []byte { return []byte(firstRow + a.Address + "/" + a.Instance) }

// encode returns the cell of an announcement with its signatures.
func encode(a Announcement, keys []proof.Key) ([]byte, error) {
	line, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	signed := strings.Join(proof.Signatures(keys, proof.Announcement, string(line)), " ")
	value := append(append(line, '\n'), signed...)
	if len(value) > maxValue {
		return nil, fmt.Errorf("it has %d bytes, want at most %d", len(value), maxValue)
	}
	return value, nil
}

// parse reads the cell of a row. The announcement counts only without an error: one of its signatures is by one of the
// keys, or unsigned ones count, too.
func parse(key, value []byte, keys []proof.Key, unsigned bool) (a Announcement, err error) {
	line, signatures, _ := bytes.Cut(value, []byte("\n"))
	if len(value) > maxValue || json.Unmarshal(line, &a) != nil || a.Instance == "" || !usable(a.Address) {
		return a, errUnreadable
	}
	_, ok := proof.Signer(keys, strings.Fields(string(signatures)), proof.Announcement, string(line))
	if !ok && !unsigned { //fault:unsigned-announcement-counts TestWatcher_forged
		return a, errUnsigned
	}
	if !bytes.Equal(key, a.rowKey()) { //fault:announcement-of-another-address TestWatcher_forged
		return a, errMoved
	}
	return a, nil
}

// usable reports whether an address can be dialed: HOST:PORT of few and usual characters.
func usable(address string) bool {
	odd := func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !letter && (r < '0' || r > '9') && !strings.ContainsRune("-._:[]%", r)
	}
	return len(address) <= 300 && strings.IndexFunc(address, odd) < 0 && settings.CheckAddress("", address) == nil
}
