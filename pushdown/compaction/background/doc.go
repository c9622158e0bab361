// Package background compacts rows slowly, so that queries and writes are not disturbed, as long as
// its process runs.
//
//	worker.go    which region is next, and its lease
//	leases.go    the leases of all regions that are due, in one call
//	region.go    some seconds of work on one region
//	walk.go      the rows of an interval of hours in a region, metric by metric
//	progress.go  which hours are done, and which are next
//	pace.go      the cost of work, for package pacer: the rate, queries, calls that get slower
//	metrics.go   counters
//
// # What is done, in which order
//
// Regions are worked on for some seconds each, one after another. In each region first
// come newly sealed hours (their end is older than the margin); then hours that were
// sealed a day ago, a second time, for points that came late; then older and older ones,
// six hours at a time, until the oldest row. Hours that are done are not read again:
// only gateway compact compacts rows that are imported into them or get points more than
// a day late.
//
// Regions become due at different minutes of the hour, by a hash of their first keys.
//
// # Who does it
//
// A server that knows its region server takes that one's regions. Each region has a lease (package
// lease) with the state of the work, which continues where it was interrupted, in any process. The
// parts of a split region continue from the state of the whole if this process has known it;
// otherwise, and after a merge, the hours are read again, and compacted rows are not changed.
package background
