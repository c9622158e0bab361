// Package rollupjob makes rollups of raw rows, and tells which of them are still what the
// raw rows give.
//
// # How rollups are made
//
// A Job rolls up the sealed hours of metrics: those that ended longer ago than a margin. It
// works day by day in each salt bucket, writes only cells that differ from what is there, and
// may be ended at any time and run again. Values that were made of more points than there are
// now stay, unless the job is told otherwise. One worker does it at a time, by a lease. If two
// do all the same, the marks below tell that they have disturbed each other, and no query reads
// what they made.
//
// # What is recorded, and why it is a proof
//
// Of each table of rollups, metric and salt bucket there is a record: stretches of time with
//
//   - a mark of the raw rows (store.Marker), made before the first of them was read;
//   - digests of the cells that were made of them;
//   - a mark of the rollup rows, made before they were read back and found to be those cells.
//
// A query asks whether both marks still hold. If so, the raw rows are those that were read,
// and the rollup rows are what was made of them. Anything else is seen by one of the two: a
// late point, an overwrite or a deletion by the first; a worker that wakes up and writes old
// values, somebody else's rollups, a truncated table by the second. The second mark is asked
// for again after the rollup rows were read for a query, because a job may have rewritten
// them meanwhile.
//
// # What is left to raw rows
//
// A piece of a stretch, a day or what there was of it, is rolled up and yet not used where
// its raw rows say more than points, or what cannot be added up as in one pass: annotations,
// histograms and other cells; values near the largest double, of which a sum may be infinite
// in one order and finite in another; cells that carry the time of their data, which no mark
// covers. A piece with rows that cannot be read is not rolled up at all.
package rollupjob
