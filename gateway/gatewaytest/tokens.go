package gatewaytest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A token for each scope; NoToken stands for none, and WrongToken is not in the token file.
const (
	NoToken    = ""
	WrongToken = "nobody-0123456789"
	ReadToken  = "reader-0123456789"
	WriteToken = "writer-0123456789"
	AdminToken = "operator-0123456789"
	BothToken  = "collector-0123456789" // read and write
)

// TokenFile writes a file of these tokens.
func TokenFile(t *testing.T) (name string) {
	t.Helper()
	return WriteTokens(t, fmt.Sprintf("read %s\nwrite %s\nadmin %s\nread %s\nwrite %s\n",
		ReadToken, WriteToken, AdminToken, BothToken, BothToken))
}

// WriteTokens writes a file of tokens.
func WriteTokens(t testing.TB, text string) (name string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
