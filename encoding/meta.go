package encoding

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// The meta table (tsdb-meta) has one row for each series. Its key is the TSUID:
//
//	row    family  qualifier  value
//	TSUID  name    ts_ctr     8-byte count of points put; the cell's timestamp
//	                          is the time of the last put
//	TSUID  name    ts_meta    JSON, TSMeta
//
// Source: TSMeta.
const (
	MetaCounterQualifier = "ts_ctr"
	TSMetaQualifier      = "ts_meta"
)

// isMetaQualifier reports whether q is a column of the meta table.
func isMetaQualifier(q []byte) bool {
	return string(q) == MetaCounterQualifier || string(q) == TSMetaQualifier
}

// UIDMeta describes a name; AppendUIDMeta writes its stored form. Source: UIDMeta.
type UIDMeta struct {
	Type        string            `json:"type"` // METRIC, TAGK or TAGV
	DisplayName string            `json:"displayName"`
	Description string            `json:"description"`
	Notes       string            `json:"notes"`
	Created     int64             `json:"created"` // seconds
	Custom      map[string]string `json:"custom"`
}

// ParseUIDMeta reads the JSON of a UIDMeta cell.
func ParseUIDMeta(b []byte) (m UIDMeta, err error) {
	if err = json.Unmarshal(b, &m); err != nil {
		err = fmt.Errorf("encoding: cannot parse UIDMeta of %d bytes: %w", len(b), err)
	}
	return m, err
}

// TSMeta describes a series; AppendTSMeta writes its stored form. Source: TSMeta.
type TSMeta struct {
	TSUID       string            `json:"tsuid"`
	DisplayName string            `json:"displayName"`
	Description string            `json:"description"`
	Notes       string            `json:"notes"`
	Created     int64             `json:"created"` // seconds
	Custom      map[string]string `json:"custom"`
	Units       string            `json:"units"`
	DataType    string            `json:"dataType"`
	Retention   int               `json:"retention"` // days; 0 for no end
	Max         JSONDouble        `json:"max"`
	Min         JSONDouble        `json:"min"`
}

// ParseTSMeta reads the JSON of a ts_meta cell.
func ParseTSMeta(b []byte) (m TSMeta, err error) {
	if err = json.Unmarshal(b, &m); err != nil {
		err = fmt.Errorf("encoding: cannot parse TSMeta of %d bytes: %w", len(b), err)
	}
	return m, err
}

// Written reports whether a user has written a text or a custom field.
func (m *TSMeta) Written() bool {
	bound := func(d JSONDouble) bool { return d == d && d != 0 }
	return m.DisplayName+m.Description+m.Notes+m.Units+m.DataType != "" || len(m.Custom) > 0 || m.Retention != 0 ||
		bound(m.Max) || bound(m.Min)
}

// JSONDouble is a double that JSON shows as Jackson does: NaN and infinities are
// strings.
type JSONDouble float64

// UnmarshalJSON reads a number, "NaN", "Infinity" or "-Infinity". null changes
// nothing.
func (d *JSONDouble) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"NaN"`:
		*d = JSONDouble(math.NaN())
		return nil
	case "null":
		return nil
	case `"Infinity"`, `"-Infinity"`:
		b = b[1 : len(b)-1]
	}

	v, err := strconv.ParseFloat(string(b), 64)
	*d = JSONDouble(v)
	return err
}
