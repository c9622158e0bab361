package encoding

// CellBuilder writes points of one row into one cell: a single cell for one
// point, a compacted cell for more. It is reused from row to row.
type CellBuilder struct {
	Qualifier []byte
	Value     []byte
	count     int  // points added
	seconds   bool // one of them has the seconds form
	milli     bool // one of them has the milliseconds form
}

// Reset starts a cell. The memory of the last one is used again.
func (b *CellBuilder) Reset() {
	b.Qualifier, b.Value = b.Qualifier[:0], b.Value[:0]
	b.count, b.seconds, b.milli = 0, false, false
}

// Add adds a point. Points come in ascending order of time. value is the point's
// encoded value, of q.Width bytes.
func (b *CellBuilder) Add(q Qualifier, value []byte) {
	b.Qualifier = AppendQualifier(b.Qualifier, q)
	b.addValue(q, value)
}

// AddEncoded is Add for a point whose qualifier has been encoded before, as encoded.
func (b *CellBuilder) AddEncoded(q Qualifier, encoded, value []byte) {
	b.Qualifier = append(b.Qualifier, encoded...)
	b.addValue(q, value)
}

func (b *CellBuilder) addValue(q Qualifier, value []byte) {
	b.Value = append(b.Value, value...)
	b.count++
	b.seconds = b.seconds || !q.Milli
	b.milli = b.milli || q.Milli
}

// Cell completes the cell and returns it; it is valid until Reset. A compacted
// cell gets its last byte: 1 if seconds and milliseconds are mixed, else 0.
// Source: CompactionQueue.Compaction.
func (b *CellBuilder) Cell() (qualifier, value []byte) {
	if b.count > 1 {
		trailer := byte(0)
		if b.seconds && b.milli {
			trailer = 1
		}
		b.Value = append(b.Value, trailer)
	}

	return b.Qualifier, b.Value
}

// AppendEntry appends one entry of an append column: qualifier, then value.
// Source: AppendDataPoints.getBytes.
func AppendEntry(dst []byte, q Qualifier, value []byte) []byte {
	return append(AppendQualifier(dst, q), value...)
}
