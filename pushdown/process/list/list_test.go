package list

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, " ": nil, ",": nil, "a": {"a"}, "a,b": {"a", "b"}, " a , b,": {"a", "b"},
		"a,\tb\n,,c d": {"a", "b", "c d"},
	} {
		if d := cmp.Diff(want, Split(text)); d != "" {
			t.Errorf("%q: -want +got\n%s", text, d)
		}
	}
}

// A bad entry is skipped and logged if there are good ones. Without a good one it is an error.
func TestUsable(t *testing.T) {
	number := func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0, fmt.Errorf("got %q, want a number", text)
		}
		return n, nil
	}
	f := func(entries, want, logged, fault string) {
		t.Helper()
		usable, unusable, err := Usable(strings.Split(entries, ","), number)
		var log bytes.Buffer
		Warn(slog.New(slog.NewTextHandler(&log, nil)), "DOWNPOUR_NUMBERS", unusable)
		switch {
		case fmt.Sprint(usable) != want:
			t.Errorf("%q: got %v, want %s", entries, usable, want)
		case logged == "" && log.Len() > 0,
			logged != "" && (!strings.Contains(log.String(), logged) ||
				!strings.Contains(log.String(), "variable=DOWNPOUR_NUMBERS")):
			t.Errorf("%q: logged %s, want %q", entries, &log, logged)
		case fault == "" && err != nil, fault != "" && (err == nil || err.Error() != fault):
			t.Errorf("%q: error %v, want %q", entries, err, fault)
		}
	}
	f("1, 2", "[1 2]", "", "")
	f("", "[]", "", "")
	f("x, 2,y", "[2]", `got \"x\", want a number`, "")
	f(" 1 ,x", "[1]", `got \"x\", want a number`, "")
	f("x,y", "[]", `got \"y\", want a number`, `got "x", want a number; got "y", want a number`)

	fault := errors.New("unwelcome")
	if _, _, err := Usable([]string{"a", "b"}, func(string) (int, error) { return 0, fault }); !errors.Is(err, fault) {
		t.Errorf("got %v, want it to be %v", err, fault)
	}
}
