package encoding

// Column families of OpenTSDB's tables.
// Source: TSDB.FAMILY, UniqueId.ID_FAMILY, UniqueId.NAME_FAMILY, TSMeta.FAMILY.
const (
	FamilyData = "t"    // data and tree table
	FamilyID   = "id"   // UID table: name to UID, and the counters
	FamilyName = "name" // UID table: UID to name; also the meta table's only family
)

// Cell is one cell of any of OpenTSDB's tables, without the table's name.
type Cell struct {
	Family                string
	Row, Qualifier, Value []byte
}

// TableKind is how the keys and cells of a table are read.
type TableKind uint8

const (
	TableData TableKind = iota // tsdb: points, annotations
	TableUID                   // tsdb-uid: names, UIDs, counters, UIDMeta
	TableMeta                  // tsdb-meta: TSUIDs, their counters and TSMeta
)

// String is the table's default name in OpenTSDB.
func (k TableKind) String() string { return [...]string{"tsdb", "tsdb-uid", "tsdb-meta"}[k] }

// KindOf guesses the kind of table that a cell comes from, by its family and qualifier: names of
// tables can be configured, and are no evidence.
func KindOf(family string, qualifier []byte) TableKind {
	switch {
	case family == FamilyData:
		return TableData
	case family == FamilyName && isMetaQualifier(qualifier):
		return TableMeta
	}
	return TableUID
}
