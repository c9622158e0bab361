package encoding

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
)

// DumpLine is a cell as a line of JSON, its bytes in hex. The dump command reads
// this form, and cells recorded from other servers are kept in it:
//
//	{"table":"tsdb","row":"000001…","family":"t","qualifier":"03cf","value":"4033…"}
type DumpLine struct {
	Table     string `json:"table"`
	Row       string `json:"row"`
	Family    string `json:"family"`
	Qualifier string `json:"qualifier"`
	Value     string `json:"value"`
}

// ParseDumpLine reads one line. It fails, and names the field, if that is not hex.
func ParseDumpLine(line []byte) (table string, c Cell, err error) {
	var l DumpLine
	if err := json.Unmarshal(line, &l); err != nil {
		return "", c, fmt.Errorf("encoding: cannot parse dump line: %w", err)
	}

	c.Family = l.Family
	for _, f := range []struct {
		name, text string
		to         *[]byte
	}{{"row", l.Row, &c.Row}, {"qualifier", l.Qualifier, &c.Qualifier}, {"value", l.Value, &c.Value}} {
		if *f.to, err = hex.DecodeString(f.text); err != nil {
			return "", c, fmt.Errorf("encoding: cannot parse %s %q of dump line: %w", f.name, f.text, err)
		}
	}

	return l.Table, c, nil
}

// maxDumpLine bounds one line in bytes: the hex of a compacted cell with a point in
// each millisecond of the hour fits.
const maxDumpLine = 128 << 20

// Dump reads cells from r, one DumpLine on each line, and writes each to w as
// Describe shows it, under a heading with its table and family. It stops at the
// first line that it cannot read; the error has its number.
func (s Schema) Dump(w io.Writer, r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxDumpLine)

	var text []byte
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		table, c, err := ParseDumpLine(lines.Bytes())
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}

		text = fmt.Appendf(text[:0], "== %s %s\n", table, c.Family)
		text = s.Describe(text, KindOf(c.Family, c.Qualifier), c)
		if _, err := w.Write(text); err != nil {
			return err
		}
	}

	return lines.Err()
}
