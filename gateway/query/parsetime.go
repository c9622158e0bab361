package query

// Time parses a time written as the start or end of a query, relative to the parser's Now.
// It returns ms since 1970. The error's text is OpenTSDB's, for the client.
// Source: DateTime.parseDateTimeString.
func (p Parser) Time(text string) (int64, error) {
	return clock{now: p.Now, zone: p.Zone}.parseTime(text, "")
}

// TimeIn is Time for a date in a zone, "" for the parser's.
func (p Parser) TimeIn(text, zone string) (int64, error) {
	return clock{now: p.Now, zone: p.Zone}.parseTime(text, zone)
}
