// Package tablestest has OpenTSDB's tables, for tests.
package tablestest

import (
	"downpour/encoding"
	"downpour/gateway/metadata/tables"
	"downpour/pushdown/store"
)

// Names are those of the tables.
var Names = tables.Names{Data: "tsdb", UID: "tsdb-uid", Meta: "tsdb-meta", Tree: "tsdb-tree"}

// Specs are the tables, of rows with a schema.
func Specs(schema encoding.Schema) []store.TableSpec { return tables.Specs(Names, schema, "NONE") }
