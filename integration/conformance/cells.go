package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"downpour/encoding"
)

// Cells is a recording of the cells that OpenTSDB makes of points on empty tables.
type Cells struct {
	// Salts and widths are those of the tables; Appends says that rows are append columns.
	SaltWidth, SaltBuckets, MetricWidth, TagKWidth, TagVWidth int
	Appends                                                   bool

	Puts      []json.RawMessage // bodies for /api/put, one behind the other
	UID, Data []string          // a CellLine for each cell of both tables
}

// Cell is one of a recording of several tables, in hex except for the names.
type Cell struct{ Table, Row, Family, Qualifier, Value string }

// CellLine is a cell as text: a row, family:qualifier and a value, 000001 name:metrics = 6c6f61642e696e74.
// The points in an append column are sorted, because a TSD appends those of one request in any order.
func CellLine(row []byte, family string, qualifier, value []byte) string {
	if bytes.Equal(qualifier, encoding.AppendColumn) {
		return fmt.Sprintf("%x %s:%x = %x", row, family, qualifier, appended(value))
	}
	return fmt.Sprintf("%x %s:%x = %x", row, family, qualifier, value)
}

// appended are the sorted points of an append column, each a qualifier and a value:
// f01bfc43 is a millisecond with 4 bytes of an integer behind it, 0707 a second with 8.
// A rest that is no whole point is kept as one.
func appended(column []byte) (points [][]byte) {
	for len(column) > 1 {
		size := 2
		if column[0]>>4 == 0xF {
			size = 4
		}
		if len(column) < size {
			break
		}
		size += int(column[size-1]&7) + 1
		if len(column) < size {
			break
		}
		points, column = append(points, column[:size]), column[size:]
	}
	if len(column) > 0 {
		points = append(points, column)
	}
	slices.SortFunc(points, bytes.Compare)
	return points
}
