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
//	00               id      kind       8-byte counter    last UID assigned
//	00               id      downpour_changes  8-byte counter  changes of names; Downpour's own
//	UID              name    kind_meta  JSON              UIDMeta
//
// The qualifier of a kind is "metrics", "tagk" or "tagv", and that of its UIDMeta
// "metric_meta", "tagk_meta" or "tagv_meta". Names are ISO-8859-1. A row may hold
// cells of several kinds, because each kind counts its UIDs from 1. Example, as
// OpenTSDB writes it:
//
//	73 79 73 2E 63 70 75 2E 6E 69 63 65   id:metrics    00 00 01
//	sys.cpu.nice                                        UID 1
//	00 00 01                              name:metrics  73 79 73 2E 63 70 75 2E 6E 69 63 65
//	00                                    id:metrics    00 00 00 00 00 00 00 06
//
// A new UID is the counter's next value. The reverse mapping is written before
// the forward one, each by compare-and-set, so that every UID that a writer can
// find has a name. Source: UniqueId.UniqueIdAllocator.

// CounterRow is the row of the UID table that holds the last UID assigned of each
// kind. Source: UniqueId.MAXID_ROW.
var CounterRow = []byte{0x00}

// ChangesQualifier is a column of CounterRow, family id, that counts deleted and
// renamed names. Gateways that cache names watch it. OpenTSDB ignores it.
const ChangesQualifier = "downpour_changes"

// CounterWidth is the width of a counter, in the UID and in the meta table.
const CounterWidth = 8

// Qualifier is the kind's column in the UID table.
func (k UIDKind) Qualifier() []byte { return []byte(k.String()) }

// MetaQualifier is the column of the kind's UIDMeta. Source: UIDMeta.
func (k UIDKind) MetaQualifier() []byte {
	return []byte([...]string{"metric_meta", "tagk_meta", "tagv_meta"}[k])
}

// MetaType is the kind's name in meta data: METRIC, TAGK or TAGV. Source: UniqueIdType.
func (k UIDKind) MetaType() string { return [...]string{"METRIC", "TAGK", "TAGV"}[k] }

// ParseUIDKind returns the kind that a qualifier of the UID table names. meta is
// set if it is the column of a UIDMeta, and clear if it is that of a mapping. ok is
// false for other qualifiers.
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

// Forward returns the cell that maps the name to the UID. It fails for a name that
// is not ISO-8859-1.
func (m UIDMapping) Forward() (Cell, error) {
	name, err := AppendName(nil, m.Name)
	return Cell{Family: FamilyID, Row: name, Qualifier: m.Kind.Qualifier(), Value: m.UID}, err
}

// Reverse returns the cell that maps the UID to the name. It fails for a name that
// is not ISO-8859-1.
func (m UIDMapping) Reverse() (Cell, error) {
	name, err := AppendName(nil, m.Name)
	return Cell{Family: FamilyName, Row: m.UID, Qualifier: m.Kind.Qualifier(), Value: name}, err
}

// ParseUIDMapping reads a cell of Forward or Reverse. The UID is a view into it. It
// fails for other cells and for a UID whose width is not the schema's.
func (s Schema) ParseUIDMapping(c Cell) (UIDMapping, error) {
	kind, meta, ok := ParseUIDKind(c.Qualifier)
	if !ok || meta {
		return UIDMapping{}, fmt.Errorf("encoding: qualifier %q of the UID table, want metrics, tagk or tagv",
			c.Qualifier)
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
		return UIDMapping{}, fmt.Errorf("encoding: UID %s of kind %s has %d bytes, want %d", m.UID, kind, len(m.UID),
			s.UIDWidth(kind))
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
