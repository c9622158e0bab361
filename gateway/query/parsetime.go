package query

// Time reads a time as start and end of a query are written, in ms since 1970,
// against the parser's clock. The error is a client's text.
// Source: DateTime.parseDateTimeString.
func (p Parser) Time(text string) (int64, error) {
	return clock{now: p.Now, zone: p.Zone}.parseTime(text, "")
}
