package encoding

// looksLikeRollup reports whether a cell of family t is that of a rollup. Both tables have the same
// family, and only the cell's value shows what an ID means in the data table: an annotation is
// JSON. Columns 5 and 6 are read as append columns and histograms.
func looksLikeRollup(c Cell) bool {
	if len(c.Qualifier) != RollupQualifierWidth {
		return false
	}
	switch c.Qualifier[0] {
	case PrefixAppend, PrefixHistogram:
		return false
	case PrefixAnnotation:
		return len(c.Value) > 0 && c.Value[0] != '{'
	}
	return c.Qualifier[0] < 1<<7 // IDs of aggregators are 0 to 127
}

// rollup writes a rollup's qualifier and value.
func (p *page) rollup(qualifier, value []byte) {
	index, float, width := splitRollup(qualifier[1:])
	kind := "integer"
	if float {
		kind = "float"
	}
	p.field(qualifier, "rollup column %d, interval %d, %s on %d byte%s (of the data table: skipped by readers)",
		qualifier[0], index, kind, width, plural(width))
	p.title("value", value)
	p.single(Qualifier{Float: float, Width: width}, value)
}
