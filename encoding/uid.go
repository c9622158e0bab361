package encoding

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// UIDKind is one of the three name spaces of the UID table.
type UIDKind uint8

const (
	UIDMetric UIDKind = iota // names of metrics
	UIDTagK                  // keys of tags, such as host
	UIDTagV                  // values of tags, such as web01
)

// String is the kind's qualifier in the UID table, which is also its name in
// OpenTSDB's messages: "metrics", "tagk", "tagv".
func (k UIDKind) String() string { return [...]string{"metrics", "tagk", "tagv"}[k] }

// UID is the short binary name of a metric, tag key or tag value: a number,
// big-endian on the width that the schema has for the kind. UIDs compare as bytes.
type UID []byte

// String is the UID in upper-case hex, as OpenTSDB prints it.
func (u UID) String() string { return strings.ToUpper(hex.EncodeToString(u)) }

// AppendUID appends id big-endian on width bytes. It fails if id needs more.
func AppendUID(dst []byte, id uint64, width int) ([]byte, error) {
	if id>>(8*width) != 0 {
		return dst, fmt.Errorf("encoding: UID %d does not fit %d bytes", id, width)
	}
	for i := width - 1; i >= 0; i-- {
		dst = append(dst, byte(id>>(8*i)))
	}
	return dst, nil
}

// UIDNumber is the number that a UID holds.
func UIDNumber(u []byte) uint64 {
	var n uint64
	for _, b := range u {
		n = n<<8 | uint64(b)
	}
	return n
}

// ParseHexUID reads the hex of a UID, a TSUID or a branch's ID, in either case. An odd number
// of digits gets a leading zero. Errors have OpenTSDB's texts. Source: UniqueId.stringToUid.
func ParseHexUID(text string) (UID, error) {
	if text == "" {
		return nil, errors.New("UID was empty")
	}
	if len(text)%2 != 0 {
		text = "0" + text
	}
	u, err := hex.DecodeString(text)
	if err != nil {
		return nil, errors.New("contains illegal character for hexBinary: " + text)
	}
	return u, nil
}

// MarshalText writes a UID as upper-case hex.
func (u UID) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText reads hex of either case.
func (u *UID) UnmarshalText(text []byte) (err error) {
	*u, err = hex.AppendDecode(nil, text)
	return err
}
