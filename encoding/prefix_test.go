package encoding

import (
	"bytes"
	"slices"
	"testing"
)

func TestPrefixEnd(t *testing.T) {
	for _, c := range []struct{ prefix, want []byte }{
		{nil, nil},
		{[]byte{}, nil},
		{[]byte{0}, []byte{1}},
		{[]byte{0xFE}, []byte{0xFF}},
		{[]byte{0xFF}, nil},
		{[]byte{0xFF, 0xFF, 0xFF}, nil},
		{[]byte{0, 0, 1}, []byte{0, 0, 2}},
		{[]byte{0, 0xFF}, []byte{1}},
		{[]byte{0, 0xFF, 0xFF}, []byte{1}},
		{[]byte{0xFF, 0}, []byte{0xFF, 1}},
		{[]byte{0xFF, 0xFE, 0xFF}, []byte{0xFF, 0xFF}},
		{[]byte("host"), []byte("hosu")},
	} {
		before := slices.Clone(c.prefix)
		if got := PrefixEnd(c.prefix); !bytes.Equal(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("PrefixEnd(% X) is % X, want % X", c.prefix, got, c.want)
		}
		if !bytes.Equal(c.prefix, before) {
			t.Errorf("PrefixEnd has changed its argument % X to % X", before, c.prefix)
		}
	}
}

// FuzzPrefixEnd: a key is below PrefixEnd and not below the prefix if and only if it begins with
// the prefix.
func FuzzPrefixEnd(f *testing.F) {
	f.Add([]byte{0, 0xFF}, []byte{0, 0xFF, 3})
	f.Add([]byte{0, 0xFF}, []byte{1})
	f.Add([]byte{0xFF, 0xFF}, []byte{0xFF, 0xFF, 0xFF})
	f.Add([]byte{}, []byte{0xFF})
	f.Add([]byte("host"), []byte("hosu"))
	f.Fuzz(func(t *testing.T, prefix, key []byte) {
		stop := PrefixEnd(prefix)
		for _, k := range [][]byte{key, slices.Concat(prefix, key), stop} {
			inside := bytes.Compare(k, prefix) >= 0 && (stop == nil || bytes.Compare(k, stop) < 0)
			if inside != bytes.HasPrefix(k, prefix) {
				t.Errorf("% X is inside [% X, % X): %v, want true if and only if it has the prefix", k, prefix, stop,
					inside)
			}
		}
	})
}
