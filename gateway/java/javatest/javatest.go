// Package javatest has texts and the numbers that Java 17 and OpenTSDB 2.4.1 read in them.
// testdata/numbers.json.gz has one a line; what is not there is refused:
//
//	{"text":"1.0f","double":"1.0","float":"1.0","value":"1.0"}
package javatest

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"io"
	"testing"
)

//go:embed testdata/numbers.json.gz
var recorded []byte

// Number is a text and what is read in it, as Java spells it.
type Number struct {
	Text                     string
	Long, Int, Double, Float *string // by Long.parseLong and the like
	Value                    *string // the value of a put, by Tags.looksLikeInteger
	Integer                  bool    // what looksLikeInteger says
}

// Numbers returns what is recorded.
func Numbers(t *testing.T) (out []Number) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(recorded))
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(z); ; {
		var n Number
		if err := d.Decode(&n); err == io.EOF {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
}
