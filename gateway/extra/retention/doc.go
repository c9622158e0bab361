// Package retention deletes rows that are past: whose whole time is older than the rules of
// package rules keep the rows of their metric.
//
// The rows of a metric that go are, in each salt bucket, one range of keys: they begin with salt
// and metric, and their base time comes next. Of metric 000001 with a cut of 4D577371, one
// second after 2011-02-13 06:00, in a table without salt:
//
//	00 00 01 00 00 00 00    the first row that goes, or a later one
//	00 00 01 4D 57 73 71    the first that stays
//
// A run counts these rows. If more than half of a table's would go, it ends there, unless it was
// given a bound: a wrong pattern, or a wrong clock, would delete everything. Then it
// deletes: a store that can delete ranges (store.RangeDeleter) does, on any other rows are deleted
// one by one, in the order of their keys, so many a second. On HBase that is a deletion of the row's
// family without a timestamp, so that the region server stamps it with its own time: the proof by
// timestamps of remembered answers sees it, and it hides nothing that is put later.
//
// A run may be cut anywhere, and several may work at once: what they delete is past. The next
// run finds what is left. Rows whose key is impossible stay; gateway fsck reports them. So do
// global annotations, which are of no metric, and rows of metrics without a name.
package retention
