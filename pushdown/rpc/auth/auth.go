// Package auth checks tokens for all protocols: HTTP, telnet, WebSocket and the Flight of
// pushdown servers. A token file has lines of the form "SCOPE TOKEN" or "SCOPE TOKEN NAME"
// with the scope read, write or admin. Admin includes both others, and a token on several
// lines has all their scopes. The log has the name of who did what. The file is read again
// when it changes.
package auth

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"math/bits"
	"os"
	"strconv"
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

// MinToken is the length of the shortest token accepted.
const MinToken = 16

// Tokens are the tokens of one file. Nil means that no file is configured, and allows
// everything.
type Tokens struct {
	path string
	need Scope
	log  *slog.Logger

	mu      sync.Mutex
	checked time.Time // when the file was last checked for changes
	modTime time.Time // of the file that was read
	hashes  []hashed
	sends   Scope  // what the token that is sent to others must allow, 0 if none is
	sent    string // this token; "" if the file has none
}

// hashed is a token as it is kept in memory: by its hash.
type hashed struct {
	sum   [sha256.Size]byte
	scope Scope
	name  string // or the number of the line
}

// Load reads a token file. An empty path gives nil, which allows everything. An unknown
// scope and a short token are errors, and so is a file without a token that has any
// scope of need: a server without users is a mistake.
func Load(path string, need Scope, log *slog.Logger) (*Tokens, error) {
	if path == "" {
		return nil, nil
	}
	t := &Tokens{path: path, need: need, log: log}
	return t, t.read()
}

// Sends returns a function that returns the token that this program sends to others, which have the
// same file: among tokens with all scopes of need the first one with the fewest scopes, so that a
// program can do little with it. It is read from the current file; "" is none, as always without a
// token file. A file that now has none is an error. Sends is called once, before other goroutines
// have t.
func (t *Tokens) Sends(need Scope) (func() string, error) {
	if t == nil {
		return func() string { return "" }, nil
	}
	t.sends = need
	if err := t.read(); err != nil {
		return nil, err
	}
	if t.sent == "" {
		return nil, t.lacks(need)
	}
	return t.sending, nil
}

// sending returns the token that is sent now.
func (t *Tokens) sending() string {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.refresh(time.Now())
	return t.sent
}

// least returns the first token with the fewest scopes of those that have all of need, "" for none.
func least(entries []entry, need Scope) (token string) {
	allowed := map[string]Scope{}
	for _, e := range entries {
		allowed[e.token] |= e.scope
	}
	fewest := bits.UintSize
	for _, e := range entries {
		if scope := allowed[e.token]; scope&need == need && bits.OnesCount8(uint8(scope)) < fewest {
			token = e.token
			fewest = bits.OnesCount8(uint8(scope)) //fault:token-of-an-administrator-sent TestTokens_Sends
		}
	}
	return token
}

// lacks is the error of a file without a token of these scopes.
func (t *Tokens) lacks(need Scope) error {
	return fmt.Errorf("token file %s holds no token with scope %s", t.path, need)
}

// FirstOfEach returns the first token of a file for each scope that it names: Read,
// Write, or All for admin. Tools send them to a gateway that has the same file. An empty
// path gives none.
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

// String returns the names of the scopes as a token file has them.
func (s Scope) String() string {
	var names []string
	for _, n := range scopeNames {
		// Admin has the bits of both others: it is one name, not three.
		if s == n.scope {
			return n.name
		}
		if s&n.scope == n.scope {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, " and ")
}

// scopeNames are the scopes of a token file.
var scopeNames = []struct {
	name  string
	scope Scope
}{{"read", Read}, {"write", Write}, {"admin", All}}

// recheckEvery is how often the file is checked for changes at most.
const recheckEvery = time.Second

// Check returns what a token allows. Without a token file that is everything.
func (t *Tokens) Check(token string) Scope {
	if t == nil {
		return All
	}
	t.mu.Lock()
	defer t.mu.Unlock()

	t.refresh(time.Now())

	scope, _ := t.find(token)
	return scope
}

// Name returns the name of a token, or "line N" for one without a name, by its first line in
// the file. It is "" for an unknown token, and without a token file.
func (t *Tokens) Name(token string) string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, name := t.find(token)
	return name
}

// Admins returns the hashes of the admin tokens of now, in the order of the file; none without a token file. Package
// proof makes keys of them.
func (t *Tokens) Admins() (hashes [][sha256.Size]byte) {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()

	t.refresh(time.Now())
	for _, h := range t.hashes {
		if h.scope == All {
			hashes = append(hashes, h.sum)
		}
	}
	return hashes
}

// find returns what a token allows, and its name. The caller holds the lock.
func (t *Tokens) find(token string) (scope Scope, name string) {
	// All tokens are compared, in constant time each, so that the time reveals nothing about them.
	sum := sha256.Sum256([]byte(token))
	for _, h := range t.hashes {
		if subtle.ConstantTimeCompare(sum[:], h.sum[:]) == 1 {
			scope |= h.scope
			name = cmp.Or(name, h.name)
		}
	}
	return scope, name
}

// refresh reads a changed file again. A file that cannot be read or is invalid does not change the
// tokens. The caller holds the lock.
func (t *Tokens) refresh(now time.Time) {
	if now.Sub(t.checked) < recheckEvery {
		return
	}
	t.checked = now

	info, err := os.Stat(t.path)
	if err == nil && info.ModTime().Equal(t.modTime) {
		return
	}
	if err == nil {
		err = t.read()
	}
	switch {
	case err != nil:
		t.log.Warn("cannot read the changed token file; the previous tokens stay valid", "err", err)
	case t.sends != 0 && t.sent == "":
		t.log.Warn("no token is sent to other programs: the changed token file holds none for that", "err",
			t.lacks(t.sends))
	}
}

// read reads the file. An error does not change the tokens.
func (t *Tokens) read() error {
	entries, info, err := parseFile(t.path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o004 != 0 { //fault:open-token-file-unnoticed TestTokens_openFile
		t.log.Warn("every user of this machine may read the token file: take that right away (chmod o-r)", "file",
			t.path, "mode", info.Mode().Perm())
	}

	hashes := make([]hashed, len(entries))
	var found Scope
	for i, e := range entries {
		hashes[i] = hashed{sha256.Sum256([]byte(e.token)), e.scope, e.name}
		found |= e.scope
	}

	// A server without users is a mistake.
	if found&t.need == 0 {
		return t.lacks(t.need)
	}
	t.hashes, t.modTime = hashes, info.ModTime()
	if t.sends != 0 {
		t.sent = least(entries, t.sends)
	}
	return nil
}

// entry is a line of a token file.
type entry struct {
	scope Scope
	token string
	name  string // or the number of the line
}

// parseFile reads a token file. info is of the moment before its lines were read.
func parseFile(path string) (entries []entry, info os.FileInfo, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the token file: %w", err)
	}
	defer f.Close()
	// Before the lines are read: a change while they are read has a later time, and is noticed.
	info, err = f.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the token file: %w", err)
	}

	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		e, err := parseLine(words)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot parse token file %s, line %d: %w", path, n, err)
		}
		e.name = cmp.Or(e.name, fmt.Sprint("line ", n))
		entries = append(entries, e)
	}
	if err := lines.Err(); err != nil {
		return nil, nil, fmt.Errorf("cannot read token file %s: %w", path, err)
	}
	if len(entries) == 0 {
		return nil, nil, fmt.Errorf("token file %s holds no token", path)
	}
	return entries, info, nil
}

// shownScope returns a word that is no scope for an error, which goes to the log: never a token,
// which is in that place if the words are swapped.
func shownScope(word string) string {
	isLetter := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
	if len(word) >= MinToken || strings.TrimFunc(word, isLetter) != "" { //fault:token-in-error TestLoad_secrets
		return "has not the form of one"
	}
	return strconv.Quote(word)
}

// parseLine reads a line of a token file, split into words.
func parseLine(words []string) (e entry, err error) {
	if len(words) != 2 && len(words) != 3 {
		return e, fmt.Errorf("has %d words, want SCOPE TOKEN or SCOPE TOKEN NAME", len(words))
	}
	for _, n := range scopeNames {
		if n.name == words[0] {
			e.scope = n.scope
		}
	}
	if e.scope == 0 {
		return e, fmt.Errorf("scope %s, want read, write or admin", shownScope(words[0]))
	}
	if e.token = words[1]; len(e.token) < MinToken {
		return e, fmt.Errorf("the token has %d characters, want at least %d", len(e.token), MinToken)
	}
	if len(words) == 3 {
		e.name = words[2]
	}
	return e, nil
}
