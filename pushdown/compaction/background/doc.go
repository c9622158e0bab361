// Package background compacts rows calmly, beside those who query and write, as long as its
// process runs.
//
//	worker.go    which region is next, and its lease
//	glance.go    the leases of all regions that are due, in one call
//	region.go    some seconds of work on one region
//	walk.go      the rows of an interval of hours in a region, metric by metric
//	progress.go  which hours are done, and which are next
//	pace.go      what work costs, for package pacer: the rate, queries, calls that get slower
//	metrics.go   what is counted
//
// # What is done, in which order
//
// Regions are worked on some seconds each, in turn. In each region first come hours that have
// been sealed since (their end is older than the margin); then hours that were sealed a day
// ago, a second time, for points that came late; then older and older ones, six hours at a
// time, until the oldest row. Hours that are done are not read again, so rows that are
// imported into them, or get points more than a day late, are left to gateway compact.
//
// Regions become due at different minutes of the hour, by a hash of their first keys.
//
// # Who does it
//
// A server that knows which region server it stands beside takes that one's regions. Each
// region has a lease (package lease) with the state of the work, which goes on where it was
// cut, in whichever process. A region that was split goes on from the state of the whole if
// this process has known it; otherwise, and after a merge, the hours are read once more, and
// rows that are compacted are left.
package background
