// Package rollupjob makes rollups of raw rows, and proves which of them still equal what the raw
// rows give.
//
// # How rollups are made
//
// A Job rolls up the sealed hours of metrics: those that ended longer ago than a margin. It
// works day by day in each salt bucket, writes only cells that differ from the table's, and
// may be ended at any time and run again. Values that were made of more points than there
// are now are kept, unless the job is set otherwise. One worker does it at a time, by a
// lease. If two do nevertheless, the marks below show that they have disturbed each other,
// and no query reads their rollups.
//
// # The records, and why they are a proof
//
// Each table of rollups, metric and salt bucket has a record: sections of time with
//
//   - a mark of the raw rows (store.Marker), made before the first of them was read;
//   - digests of the cells that were made of them;
//   - a mark of the rollup rows, made before they were read back and compared with those cells.
//
// A query checks whether both marks still hold. If so, the raw rows are those that were read, and
// the rollup rows are what was made of them. One of the two detects anything else: the first a late
// point, an overwrite or a deletion; the second a worker that wakes up and writes old values,
// somebody else's rollups, or a truncated table. The second mark is checked again after the rollup
// rows were read for a query, because a job may have rewritten them in between.
//
// # What queries read from raw rows
//
// A piece of a section, a day or its sealed part, is rolled up but not used if its raw rows have
// more than points, or values that cannot be added up as in one pass: annotations, histograms and
// other cells; values near the largest double, whose sum may be infinite in one order and finite in
// another; cells that carry the time of their data, which no mark covers. A piece with rows that
// cannot be read is not rolled up at all.
package rollupjob
