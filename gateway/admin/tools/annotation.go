package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A remark is a line of an import file that carries what is no point, as a
// comment, so that whoever reads points alone passes over it:
//
//	#note {"series":"sys.cpu host=web01","value":{"startTime":1356998400,…}}
//	#note {"value":{"startTime":1356998400,…}}
//	#uidmeta {"kind":"metrics","name":"sys.cpu","value":{"displayName":…}}
//	#tsmeta {"series":"sys.cpu host=web01","counter":60,"value":{"units":…}}
//
// Series are spelled as in the lines of points: UIDs are other ones elsewhere.
// A note without series is a global one. Value is what is stored, as JSON; of a
// series that is only counted there is no value.
type remark struct {
	mark    string
	Series  string          `json:"series,omitempty"`
	Kind    string          `json:"kind,omitempty"`
	Name    string          `json:"name,omitempty"`
	Counter *int64          `json:"counter,omitempty"`
	Value   json.RawMessage `json:"value,omitempty"`

	// line is the line's number, at its place in the file.
	line int64
	at   place
}

const (
	noteMark    = "#note"
	uidMetaMark = "#uidmeta"
	tsMetaMark  = "#tsmeta"
)

// parseRemark reads a comment line; ok is false for one that is no remark.
func parseRemark(line []byte) (r remark, ok bool, err error) {
	mark, rest, _ := bytes.Cut(line, []byte{' '})
	rest = bytes.TrimSpace(rest)
	switch string(mark) {
	case noteMark, uidMetaMark, tsMetaMark:
	default:
		return r, false, nil
	}
	if len(rest) == 0 || rest[0] != '{' {
		return r, false, nil
	}
	if err := json.Unmarshal(rest, &r); err != nil {
		return r, true, fmt.Errorf("%s: %w", mark, err)
	}
	r.mark = string(mark)
	return r, true, nil
}

// appendRemark appends a remark's line, without its end. What cannot be a line,
// because it would be longer than import reads, is errLong.
func appendRemark(dst []byte, r remark) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return dst, err
	}
	if len(r.mark)+len(text)+2 > maxLine {
		return dst, errLong
	}
	return append(append(append(dst, r.mark...), ' '), text...), nil
}
