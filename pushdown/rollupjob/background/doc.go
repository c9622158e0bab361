// Package background makes rollups calmly, beside those who query and write, as long as its
// process runs.
//
//	worker.go    the lease, what is next, how it is saved
//	metric.go    the work on one metric, and when it is proven
//	progress.go  which times of which metrics are done
//	store.go     how long the store's calls take
//	metrics.go   what is counted
//
// # What is done, in which order
//
// Every six hours, once they are sealed, all metrics get the rollups of the last two days: of the
// hours that are new, and of days that have changed since. Between, once a day, a walk goes over all
// metrics a month after the other, the newest first, down to the first raw row: what was never
// rolled up, what has changed, and what is not proven any more. Where a month of a metric has no raw
// rows nothing is done: its rollups may be all that retention has left of it.
//
// So what a query reads from raw rows is usually less than the last seven hours, and a point that
// comes more than two days late costs its day the rollups for a day. gateway rollup does the same
// at once.
//
// # How calm
//
// Package pacer keeps the rate, in raw points a second, of reading. What is written costs nothing
// more: it is far less. What nothing proves although it was rolled up, as on HBase in regions
// that are written to while these must rest, is left for a day, then for two, up to eight.
//
// # Who does it
//
// One process, by a lease (package lease) that it keeps as long as it lives. Its state says how
// far the work is; another process goes on there, within a minute. Beside that each metric has its
// lease, which gateway rollup takes, too: a metric that this has is passed over.
package background
