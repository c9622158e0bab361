// Package auth is the one check behind all doors: HTTP, telnet, WebSocket and
// the Flight of pushdown servers. A token file holds one "SCOPE TOKEN" a line,
// scope read, write or admin; admin includes both others, and a token on several
// lines has all their scopes. The file is read again when it changes.
package auth

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// Scope is what a token allows, a set of bits.
type Scope uint8

const (
	Read  Scope = 1 << iota // queries, names, the state of the gateway
	Write                   // puts
	Admin                   // what changes the gateway or removes data

	All = Read | Write | Admin // what an admin token allows
)

// MinToken is the shortest token accepted.
const MinToken = 16

// Tokens are the tokens of one file. The zero value and nil allow everything:
// no file is configured.
type Tokens struct {
	path string
	need Scope
	log  *slog.Logger

	mu     sync.Mutex
	looked time.Time
	stamp  time.Time
	hashes []hashed
}

// hashed is a token as it is kept in memory.
type hashed struct {
	sum   [sha256.Size]byte
	scope Scope
}

// Load reads a token file; an empty path allows everything. A file without a
// token of a scope in need, an unknown scope or a short token is an error: a door
// that nobody can pass is a mistake of whoever wrote the file.
func Load(path string, need Scope, log *slog.Logger) (*Tokens, error) {
	if path == "" {
		return nil, nil
	}
	t := &Tokens{path: path, need: need, log: log}
	return t, t.read()
}

// First is the first token of a file that has all scopes of need: the one that a
// program shows to another that has the file too. An empty path gives none.
func First(path string, need Scope) (string, error) {
	if path == "" {
		return "", nil
	}
	entries, _, err := parseFile(path)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.scope&need == need {
			return e.token, nil
		}
	}
	return "", fmt.Errorf("token file %s holds no token with scope %s", path, need)
}

// FirstOfEach are the first tokens of a file under each scope that it names: Read,
// Write, or All for admin. An empty path gives none.
func FirstOfEach(path string) (map[Scope]string, error) {
	if path == "" {
		return nil, nil
	}
	entries, _, err := parseFile(path)
	if err != nil {
		return nil, err
	}
	first := map[Scope]string{}
	for _, e := range entries {
		if first[e.scope] == "" {
			first[e.scope] = e.token
		}
	}
	return first, nil
}

// String names the scopes as a token file does.
func (s Scope) String() string {
	var names []string
	for _, n := range scopeNames {
		if s == n.scope {
			return n.name
		}
		if s&n.scope == n.scope {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, " and ")
}

// scopeNames are the words of a token file.
var scopeNames = []struct {
	name  string
	scope Scope
}{{"read", Read}, {"write", Write}, {"admin", All}}

// recheck is how often the file's time is looked at.
const recheck = time.Second

// Check returns what a token allows. Without a token file everything is.
func (t *Tokens) Check(token string) Scope {
	if t == nil {
		return All
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refresh(time.Now())
	sum := sha256.Sum256([]byte(token))
	var scope Scope
	for _, h := range t.hashes {
		if subtle.ConstantTimeCompare(sum[:], h.sum[:]) == 1 {
			scope |= h.scope
		}
	}
	return scope
}

// refresh reads a changed file again. A file that cannot be read or is wrong
// leaves the tokens as they were.
func (t *Tokens) refresh(now time.Time) {
	if now.Sub(t.looked) < recheck {
		return
	}
	t.looked = now
	info, err := os.Stat(t.path)
	if err == nil && info.ModTime().Equal(t.stamp) {
		return
	}
	if err == nil {
		err = t.read()
	}
	if err != nil {
		t.log.Warn("token file not read again, the tokens before stay valid", "err", err)
	}
}

func (t *Tokens) read() error {
	entries, stamp, err := parseFile(t.path)
	if err != nil {
		return err
	}
	hashes := make([]hashed, len(entries))
	var found Scope
	for i, e := range entries {
		hashes[i] = hashed{sha256.Sum256([]byte(e.token)), e.scope}
		found |= e.scope
	}
	if found&t.need == 0 {
		return fmt.Errorf("token file %s holds no token with scope %s", t.path, t.need)
	}
	t.hashes, t.stamp = hashes, stamp
	return nil
}

// entry is a line of a token file.
type entry struct {
	scope Scope
	token string
}

// parseFile reads a token file, of which stamp is the time of its last change.
func parseFile(path string) (entries []entry, stamp time.Time, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, stamp, fmt.Errorf("token file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, stamp, fmt.Errorf("token file: %w", err)
	}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		e, err := parseLine(words)
		if err != nil {
			return nil, stamp, fmt.Errorf("token file %s, line %d: %w", path, n, err)
		}
		entries = append(entries, e)
	}
	if err := lines.Err(); err != nil {
		return nil, stamp, fmt.Errorf("token file %s: %w", path, err)
	}
	if len(entries) == 0 {
		return nil, stamp, fmt.Errorf("token file %s holds no token", path)
	}
	return entries, info.ModTime(), nil
}

func parseLine(words []string) (e entry, err error) {
	if len(words) != 2 {
		return e, fmt.Errorf("has %d words, want SCOPE TOKEN", len(words))
	}
	for _, n := range scopeNames {
		if n.name == words[0] {
			e.scope = n.scope
		}
	}
	if e.scope == 0 {
		return e, fmt.Errorf("scope %q, want read, write or admin", words[0])
	}
	if e.token = words[1]; len(e.token) < MinToken {
		return e, fmt.Errorf("the token has %d characters, want at least %d", len(e.token), MinToken)
	}
	return e, nil
}
