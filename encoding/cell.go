package encoding

// CellBuilder writes points of one row into one cell: the compacted form, or
// entries for the append column. It is reused from row to row.
type CellBuilder struct {
	Qualifier []byte
	Value     []byte
	count     int
	seconds   bool
	milli     bool
}

// Reset starts a cell and keeps the memory.
func (b *CellBuilder) Reset() {
	b.Qualifier, b.Value = b.Qualifier[:0], b.Value[:0]
	b.count, b.seconds, b.milli = 0, false, false
}

// Add adds a point; calls must ascend in time. value is the point's encoding,
// of q.Width bytes.
func (b *CellBuilder) Add(q Qualifier, value []byte) {
	b.Qualifier = AppendQualifier(b.Qualifier, q)
	b.Value = append(b.Value, value...)
	b.count++
	b.seconds = b.seconds || !q.Milli
	b.milli = b.milli || q.Milli
}

// Cell completes and returns the cell: of one point a plain cell, of more a
// compacted one with its trailing byte. Source: CompactionQueue.Compaction.
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
