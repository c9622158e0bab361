package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// metaLine is a line of an import file that carries meta data instead of a point:
// an annotation, or the UIDMeta or TSMeta object of a name or series. It is a
// comment, so that a reader of points alone, such as OpenTSDB's import, can pass
// over it:
//
//	#note {"series":"sys.cpu host=web01","value":{"startTime":1356998400,…}}
//	#note {"value":{"startTime":1356998400,…}}
//	#uidmeta {"kind":"metrics","name":"sys.cpu","value":{"displayName":…}}
//	#tsmeta {"series":"sys.cpu host=web01","counter":60,"value":{"units":…}}
//
// Series are spelled as in the lines of points, because their UIDs differ in
// another store. An annotation without series is a global one. Value is the stored
// JSON; it is missing for a series that only has a counter.
type metaLine struct {
	prefix  string
	Series  string          `json:"series,omitempty"`
	Kind    string          `json:"kind,omitempty"`
	Name    string          `json:"name,omitempty"`
	Counter *int64          `json:"counter,omitempty"`
	Value   json.RawMessage `json:"value,omitempty"`

	line int64 // number in the file, from 1
}

// The first word of a meta line.
const (
	annotationPrefix = "#note"
	uidMetaPrefix    = "#uidmeta"
	tsMetaPrefix     = "#tsmeta"
)

// parseMetaLine parses a comment line. ok is false for any other comment.
func parseMetaLine(line []byte) (r metaLine, ok bool, err error) {
	prefix, rest, _ := bytes.Cut(line, []byte{' '})
	rest = bytes.TrimSpace(rest)

	switch string(prefix) {
	case annotationPrefix, uidMetaPrefix, tsMetaPrefix:
	default:
		return r, false, nil
	}

	// "#note to whoever edits this file" is somebody's comment.
	if len(rest) == 0 || rest[0] != '{' {
		return r, false, nil
	}

	if err := json.Unmarshal(rest, &r); err != nil {
		return r, true, fmt.Errorf("%s: %w", prefix, err)
	}
	r.prefix = string(prefix)
	return r, true, nil
}

// appendMetaLine appends a meta line without the line end. It returns errLong if
// the line would be longer than import reads.
func appendMetaLine(dst []byte, r metaLine) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return dst, err
	}
	if len(r.prefix)+len(text)+2 > maxLine {
		return dst, errLong
	}
	return append(append(append(dst, r.prefix...), ' '), text...), nil
}
