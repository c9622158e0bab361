// Package differential makes random data and random queries for tests that compare two servers, and
// shrinks a query that they answer differently. It is pure, and a seed gives the same data and the
// same queries each time.
//
// # Data
//
// Generate makes the cells of a set of OpenTSDB tables, to be written as they
// are: names under UIDs whose bytes mean something to regular expressions, and
// series of integers on every width, floats of 4 and 8 bytes, both mixed,
// counters with resets, milliseconds, values at the limits of their types,
// months of sparse points, duplicates. Each row (a series' hour) takes one of
// the forms in which OpenTSDB leaves rows, at random:
//
//	single     one cell a point                     0010 = 01 · 0020 = 02 · …
//	compacted  one cell for all                     00100020… = 0102…00
//	appended   one append column                    050000 = 00100100200 2…
//	mixed      points dealt over all of these, some of them into two
//
// Every cell has a distinct time of writing, because with equal times the reference's
// choice between duplicates is not specified.
//
// # Queries
//
// Random draws from everything that /api/query takes of plain metrics. A Query is
// written as a POST body or as the parameters of a GET, and Shrink makes a failing one
// smaller as long as it fails. RandomExp and ShrinkExp do the same for /api/query/exp.
// Package compare lists the intended differences of answers; Compare sends another
// query for the one that needs it.
package differential
