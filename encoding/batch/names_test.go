package batch

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Names are read as they were packed, whatever their lengths.
func TestNames_roundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 9), 0, 20).Draw(t, "names")
		b := appendNames([]byte("x"), names)[1:]
		got, err := parseNames(make([][]byte, 2), b)
		if err != nil || len(got) != len(names) {
			t.Fatalf("%d names, %v, want %d", len(got), err, len(names))
		}
		for i := range names {
			if !bytes.Equal(got[i], names[i]) {
				t.Fatalf("name %d is %X, want %X", i, got[i], names[i])
			}
		}
	})
}

// The packed form of names in version 2 never changes: the number of names, their lengths, the
// first bytes of all, the second bytes of all, and so on, each byte as the difference to the same
// byte of the name before.
func TestNames_areFrozen(t *testing.T) {
	got := appendNames(nil, [][]byte{{0, 0, 1, 7}, {0, 0, 1, 9}, {5}, {0, 0, 0, 9}})
	want := []byte{4, 4, 4, 1, 4, 0, 0, 5, 0xFB, 0, 0, 0, 1, 0, 0xFF, 7, 2, 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, err := parseNames(nil, nil); len(got) != 0 || err != nil {
		t.Errorf("no bytes: got names %v, error %v, want no names and no error", got, err)
	}
}

func TestParseNames_refuses(t *testing.T) {
	f := func(want string, b ...byte) {
		t.Helper()
		if got, err := parseNames(nil, b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("% X: %v, %v, want an error with %q", b, got, err, want)
		}
	}
	f("count of names: 9 in 3 bytes, want a number up to 3", 9, 1, 1)
	f("count of names", 0x80)
	f("length of name 1 of 2", 2, 0)
	f("length of name 0 of 1: 5 in 1 bytes, want a number up to 2", 1, 5)
	f("length of name 1 of 2: 5 in 1 bytes, want a number up to 1", 2, 2, 5)
	f("1 names of 2 bytes in 1 bytes", 1, 2, 7)
	f("1 names of 0 bytes in 1 bytes", 1, 0, 7)
}

// FuzzParseNames: names that were parsed are parsed again from their packed form. The bytes may
// differ, because a number may have been written longer than it need be.
func FuzzParseNames(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{2, 4, 4, 0, 0, 0, 0, 1, 0, 7, 2})
	f.Add([]byte{3, 1, 0, 2, 7, 9, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		names, err := parseNames(nil, b)
		if err != nil {
			return
		}
		again, err := parseNames(nil, appendNames(nil, names))
		if diff := cmp.Diff(names, again); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
}
