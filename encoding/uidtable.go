package encoding

import (
	"encoding/binary"
	"fmt"
)

// The UID table (tsdb-uid) maps names to UIDs and back, and counts them:
//
//	row              family  qualifier  value
//	name             id      kind       UID               forward mapping
//	UID              name    kind       name              reverse mapping
//	00               id      kind       8-byte counter    last UID given
//	00               id      downpour_changes  8-byte counter  changes of names, ours
//	UID              name    kind_meta  JSON              UIDMeta
//
// A kind's qualifier is "metrics", "tagk" or "tagv"; of UIDMeta "metric_meta",
// "tagk_meta" or "tagv_meta". Names are ISO-8859-1. The same row may hold cells
// of several kinds: UIDs of different kinds are equal numbers. Example, as
// OpenTSDB writes it:
//
//	73 79 73 2E 63 70 75 2E 6E 69 63 65   id:metrics    00 00 01
//	sys.cpu.nice                                        UID 1
//	00 00 01                              name:metrics  73 79 73 2E 63 70 75 2E 6E 69 63 65
//	00                                    id:metrics    00 00 00 00 00 00 00 06
//
// A new UID is the counter's next value. The reverse mapping is written before
// the forward one, each by compare-and-set, so that a UID which a writer has
// seen always has a name. Source: UniqueId.UniqueIdAllocator.

// CounterRow is the row of the UID table that holds the last UID given of each
// kind. Source: UniqueId.MAXID_ROW.
var CounterRow = []byte{0x00}

// ChangesQualifier is the column of CounterRow, family id, that counts the
// deletions and renames of names, for gateways that remember them. OpenTSDB
// takes no notice of it.
const ChangesQualifier = "downpour_changes"

// CounterWidth is the width of a counter, in the UID and in the meta table.
const CounterWidth = 8

// Qualifier is the kind's column in the UID table.
func (k UIDKind) Qualifier() []byte { return []byte(k.String()) }

// MetaQualifier is the column of the kind's UIDMeta. Source: UIDMeta.
func (k UIDKind) MetaQualifier() []byte {
	return []byte([...]string{"metric_meta", "tagk_meta", "tagv_meta"}[k])
}

// ParseUIDKind is the kind that a qualifier of the UID table names, of a mapping
// or of a UIDMeta; meta tells which.
func ParseUIDKind(qualifier []byte) (kind UIDKind, meta, ok bool) {
	for k := UIDMetric; k <= UIDTagV; k++ {
		switch string(qualifier) {
		case k.String():
			return k, false, true
		case string(k.MetaQualifier()):
			return k, true, true
		}
	}
	return 0, false, false
}

// UIDMapping is a name and its UID.
type UIDMapping struct {
	Kind UIDKind
	Name string
	UID  UID
}

// Forward is the cell by which a UID is found for a name. It fails for a name
// outside ISO-8859-1.
func (m UIDMapping) Forward() (Cell, error) {
	name, err := AppendName(nil, m.Name)
	return Cell{Family: FamilyID, Row: name, Qualifier: m.Kind.Qualifier(), Value: m.UID}, err
}

// Reverse is the cell by which the name of a UID is found. It fails for a name
// outside ISO-8859-1.
func (m UIDMapping) Reverse() (Cell, error) {
	name, err := AppendName(nil, m.Name)
	return Cell{Family: FamilyName, Row: m.UID, Qualifier: m.Kind.Qualifier(), Value: name}, err
}

// ParseUIDMapping reads a forward or reverse cell. The UID is a view into it.
// It fails for other cells and for a UID whose width is not the schema's.
func (s Schema) ParseUIDMapping(c Cell) (UIDMapping, error) {
	kind, meta, ok := ParseUIDKind(c.Qualifier)
	if !ok || meta {
		return UIDMapping{}, fmt.Errorf("encoding: qualifier %q of the UID table, want metrics, tagk or tagv", c.Qualifier)
	}
	m := UIDMapping{Kind: kind}
	switch c.Family {
	case FamilyID:
		m.Name, m.UID = ParseName(c.Row), c.Value
	case FamilyName:
		m.Name, m.UID = ParseName(c.Value), c.Row
	default:
		return UIDMapping{}, fmt.Errorf("encoding: family %q of the UID table, want id or name", c.Family)
	}
	if len(m.UID) != s.UIDWidth(kind) {
		return UIDMapping{}, fmt.Errorf("encoding: UID %s of kind %s has %d bytes, want %d", m.UID, kind, len(m.UID), s.UIDWidth(kind))
	}
	return m, nil
}

// AppendCounter appends a counter's value, 8 bytes big-endian: the form that
// HBase's Increment keeps.
func AppendCounter(dst []byte, n int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(n)) }

// ParseCounter reads a counter's value.
func ParseCounter(b []byte) (int64, error) {
	if len(b) != CounterWidth {
		return 0, fmt.Errorf("encoding: counter % X has %d bytes, want %d", b, len(b), CounterWidth)
	}
	return int64(binary.BigEndian.Uint64(b)), nil
}
