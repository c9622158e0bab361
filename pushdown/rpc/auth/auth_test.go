package auth

import (
	"bytes"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, path, text string, modTime time.Time) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, modTime, modTime); err != nil {
		t.Fatal(err)
	}
}

func TestTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write(t, path, "# collectors\nwrite collector-0123456789\nread grafana-0123456789\n\n"+
		"admin operator-0123456789\nread collector-0123456789\n",
		time.Unix(1000, 0))
	tokens, err := Load(path, All, slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	f := func(token string, want Scope) {
		t.Helper()
		if got := tokens.Check(token); got != want {
			t.Errorf("%q: scope %03b, want %03b", token, got, want)
		}
	}
	f("", 0)
	f("grafana", 0)
	f("grafana-0123456789", Read)
	f("collector-0123456789", Read|Write)
	f("operator-0123456789", All)

	write(t, path, "read another-0123456789\n", time.Unix(2000, 0))
	tokens.checked = time.Time{} // so that the file is checked again
	f("grafana-0123456789", 0)
	f("another-0123456789", Read)

	// The tokens of before stay while the file is wrong.
	write(t, path, "nonsense\n", time.Unix(3000, 0))
	tokens.checked = time.Time{}
	f("another-0123456789", Read)
}

// A token file that every user of the machine may read is logged, whenever it is read.
//
//fault:open-token-file-unnoticed 0o004 => 0
func TestTokens_openFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	var tokens *Tokens
	read := func(at int64, mode os.FileMode, want int) {
		t.Helper()
		logged.Reset()
		write(t, path, "read grafana-0123456789\n", time.Unix(at, 0))
		err := os.Chmod(path, mode)
		if tokens == nil && err == nil {
			tokens, err = Load(path, Read, log)
		} else {
			tokens.checked = time.Time{}
		}
		if err != nil || tokens.Check("grafana-0123456789") != Read {
			t.Fatalf("mode %o: the token is refused, %v", mode, err)
		}
		if n := strings.Count(logged.String(), "every user of this machine may read the token file"); n != want ||
			n > 0 && !strings.Contains(logged.String(), path) {
			t.Errorf("mode %o: %q, want %d warnings", mode, &logged, want)
		}
	}
	read(1000, 0o644, 1)
	read(2000, 0o640, 0)
	read(3000, 0o600, 0)
	read(4000, 0o604, 1)
	read(4000, 0o604, 0) // it has not changed
}

func TestLoad_refuses(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "tokens")
		write(t, path, text, time.Unix(1000, 0))
		if _, err := Load(path, All, slog.Default()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	f("", "no token")
	f("# only a comment\n", "no token")
	f("root 0123456789abcdef\n", `scope "root"`)
	f("read short\n", "5 characters")
	f("read 0123456789abcdef a b\n", "4 words")
	if _, err := Load(filepath.Join(t.TempDir(), "absent"), All, slog.Default()); err == nil {
		t.Error("an absent file was accepted")
	}
	if tokens, err := Load("", All, nil); err != nil || tokens.Check("anything") != All {
		t.Errorf("without a file: %v, %v", tokens, err)
	}
}

// No error has a word that may be a token, wherever it is in its line.
//
//fault:token-in-error isLetter) != "" => isLetter) == "none"
func TestLoad_secrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	const secret = "5eCr3t-0123456789"
	for _, line := range []string{secret + " read", secret, "read: " + secret, "read " + secret + " a b",
		secret + " " + secret, "\"" + secret + "\" read", secret[:9] + " read",
		"read=" + secret, "read=" + secret + " x", "abcdefghijklmnopq read", "read:" + secret + " name"} {
		write(t, path, "admin operator-0123456789\n"+line+"\n", time.Unix(1000, 0))
		_, err := Load(path, All, slog.Default())
		if err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: %v, want an error that names line 2", line, err)
		}
		if err != nil && (strings.Contains(err.Error(), secret[:6]) || strings.Contains(err.Error(), "abcdef")) {
			t.Errorf("%s: the error tells the token: %v", line, err)
		}
	}
}

// A server that only reads refuses a file that lets nobody read.
func TestLoad_need(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write(t, path, "write collector-0123456789\n", time.Unix(1000, 0))
	if _, err := Load(path, Read, slog.Default()); err == nil ||
		!strings.Contains(err.Error(), "no token with scope read") {
		t.Errorf("got %v, want an error about scope read", err)
	}
	if _, err := Load(path, All, slog.Default()); err != nil {
		t.Error(err)
	}
}

func TestFirstOfEach(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write(t, path, "write collector-0123456789\nread grafana-0123456789\n# read\nwrite importer-0123456789\n",
		time.Unix(1000, 0))
	got, err := FirstOfEach(path)
	want := map[Scope]string{Read: "grafana-0123456789", Write: "collector-0123456789"}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	write(t, path, "admin operator-0123456789\nroot operator-0123456789\n", time.Unix(1000, 0))
	if _, err := FirstOfEach(path); err == nil || !strings.Contains(err.Error(), `line 2: scope "root"`) {
		t.Errorf("a wrong line: %v, want an error that names line and scope", err)
	}
	write(t, path, "admin operator-0123456789\n", time.Unix(1000, 0))
	if got, err := FirstOfEach(path); err != nil || !maps.Equal(got, map[Scope]string{All: "operator-0123456789"}) {
		t.Errorf("%q, %v, want the admin's token for all scopes", got, err)
	}
	if got, err := FirstOfEach(""); err != nil || len(got) != 0 {
		t.Errorf("without a file: %q, %v", got, err)
	}
}

// What is sent to other programs allows no more than it must, wherever it stands in the file, and is that of the file
// as it is now.
//
//fault:token-of-an-administrator-sent bits.OnesCount8(uint8(scope)) => 0
func TestTokens_Sends(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write(t, path, "admin operator-0123456789\nwrite collector-0123456789\nread either-0123456789\n"+
		"write either-0123456789\nread grafana-0123456789\nread reader-0123456789\n",
		time.Unix(1000, 0))
	f := func(need Scope, want, wantError string) (*Tokens, func() string) {
		t.Helper()
		tokens, err := Load(path, All, slog.Default())
		if err != nil {
			t.Fatal(err)
		}
		token, err := tokens.Sends(need)
		if (err == nil) != (wantError == "") || err != nil && !strings.Contains(err.Error(), wantError) {
			t.Fatalf("%s: got %v, want %q", need, err, wantError)
		}
		if err == nil && token() != want {
			t.Errorf("%s: got %q, want %q", need, token(), want)
		}
		return tokens, token
	}
	f(Write, "collector-0123456789", "")
	f(Read|Write, "either-0123456789", "")
	f(All, "operator-0123456789", "")
	tokens, token := f(Read, "grafana-0123456789", "")

	change := func(text string, at int64, want string) {
		t.Helper()
		write(t, path, text, time.Unix(at, 0))
		tokens.checked = time.Time{} // so that the file is checked again
		if got := token(); got != want {
			t.Errorf("after a change: got %q, want %q", got, want)
		}
	}
	change("admin operator-0123456789\n", 2000, "operator-0123456789")
	change("nonsense\n", 3000, "operator-0123456789")
	change("write collector-0123456789\n", 4000, "")
	if got := tokens.Check("operator-0123456789"); got != 0 {
		t.Errorf("a token that is gone allows %s: a file with nothing to send counts all the same", got)
	}
	change("read grafana-0123456789\n", 5000, "grafana-0123456789")

	write(t, path, "write collector-0123456789\n", time.Unix(6000, 0))
	f(Read, "", "no token with scope read")
	f(Read|Write, "", "scope read and write")
	var none *Tokens
	if token, err := none.Sends(Read); err != nil || token() != "" {
		t.Errorf("without a file: %v", err)
	}
}

// A token has the name of its first line, or the number of that line.
func TestTokens_Name(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write(
		t, path, "# tokens\nread 0123456789abcdef\nadmin abcdefghij012345 deploy\nwrite 0123456789abcdef collector\n",
		time.Unix(1000, 0))
	tokens, err := Load(path, All, slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]string{"0123456789abcdef": "line 2", "abcdefghij012345": "deploy",
		"unknown-0123456789": "", "": ""} {
		if got := tokens.Name(token); got != want {
			t.Errorf("%q: got the name %q, want %q", token, got, want)
		}
	}
	if got := tokens.Check("0123456789abcdef"); got != Read|Write {
		t.Errorf("a token on two lines allows %s, want read and write", got)
	}
	var none *Tokens
	if got := none.Name("x"); got != "" {
		t.Errorf("without a file: %q", got)
	}
}
