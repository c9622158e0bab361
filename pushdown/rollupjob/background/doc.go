// Package background makes rollups slowly, so that queries and writes are not disturbed, as long as
// its process runs.
//
//	worker.go    the lease, the next work, how it is saved
//	metric.go    the work on one metric, and when it is proven
//	progress.go  which times of which metrics are done
//	store.go     how long the store's calls take
//	metrics.go   counters
//
// # What is done, in which order
//
// Every six hours, once they are sealed, all metrics get the rollups of the last two days: of new
// hours, and of days that have changed since. In between, once a day, a walk goes over all metrics
// month by month, the newest first, down to the first raw row, and finds what was never rolled up,
// has changed, or is no longer proven. A month of a metric without raw rows is skipped: its rollups
// may be all that retention has kept of it.
//
// So what a query reads from raw rows is usually less than the last seven hours, and a point that
// comes more than two days late costs its day the rollups for a day. gateway rollup does the same
// immediately.
//
// # How fast
//
// Package pacer limits the rate of reading, in raw points per second. Writes are not counted: they
// are far fewer. Rollups that cannot be proven, as on HBase in regions that are written to all the
// time, are retried after a day, then after two, up to eight.
//
// # Who works
//
// One process, by a lease (package lease) that it holds as long as it lives. Its state is the
// progress; if it dies another process continues there, within a minute. In addition each metric
// has its own lease, which gateway rollup takes, too: the worker skips metrics that gateway rollup
// works on.
package background
