// Package compaction makes one cell of the points of a row on HBase, in the form of OpenTSDB's own
// row compaction, while others read and write the row. No point is lost, no matter what else
// happens to the row and where the job is interrupted.
//
//	plan.go     decides from one read of a row what to put and what to delete, or why
//	            the row stays: a function of the row alone
//	history.go  the cells that HBase still has of a row, and which of them can be read
//	points.go   the points of a row's cells, and the cell that is made of them
//	job.go      carries plans out, row after row
//	counts.go   counts of a job's work
//
// # The order
//
//  1. The row is read with all versions of its cells and the markers of all deletions.
//  2. The merged cell is put, with the latest timestamp of its parts, on the condition
//     that every cell of the row now has a timestamp that was read, and that the row has as
//     many columns as then. So nothing was written since (a write has a new timestamp),
//     and neither the row nor a cell of it was deleted.
//  3. The parts are deleted, each by its version, on the condition that the merged cell
//     is there now with its value, and that every cell still has a timestamp that was read.
//
// Steps 2 and 3 are one atomic operation each.
//
// # Why nothing is lost
//
//   - A part is deleted only while a cell with its points can be read: step 3 asks for it
//     under the lock of the row. No job of ours removes a merged cell, because a TSD that
//     compacts the row at that moment may have seen it and delete all others.
//   - The deletion of a version does not affect later writes to the same column,
//     with a later timestamp. The merged cell's timestamp is that of one of its parts, so
//     a point that is written over later is newer than it, and wins where duplicates are
//     resolved.
//   - What was deleted does not come back: between reading and step 2 a DELETE leaves no
//     cell to satisfy the condition, and the deletion of single columns, as an fsck makes,
//     leaves too few. What another job, a TSD's compaction or a writer
//     has put in between has a timestamp that was not read, or is what this job would put; or it is what a second job,
//     that has read the row after the deletion, puts with the timestamp of a part, and that counts as a column. The
//     second job does so no sooner than a margin after the deletion. So a row that was read longer than half a margin
//     ago is read again before step 2. What remains is a process that is suspended within the call of step 2 for a
//     margin, or a major compaction that drops the marker sooner, and then a second job that is cut between its steps
//     2 and 3.
//   - After step 2 a deletion of a part alone changes nothing: the merged cell has its points.
//     Our own tools check the row again after a deletion, and report that it has changed.
//   - Two jobs that compact one row each delete only parts of a merged cell that is there.
//   - A TSD that compacts the row and finds one cell with all its points puts none, and
//     deletes the others. It may find another such cell than this job: after a point was
//     written again in another form. That point has a timestamp that was not read, so step 3
//     leaves both.
//   - Cut after step 2, the row has its points twice, with equal values. The next run finds
//     the merged cell among the parts, puts nothing, and continues with step 3.
//   - Where the newest version of a column is deleted, HBase shows an older one that it has
//     not dropped yet, also with VERSIONS 1. So step 1 reads all versions, and step 3
//     deletes all of them, also those that a marker hides already: when HBase writes its
//     memory to files, it drops markers under a newer version of their column, and what they
//     hide in older files is there again.
//
// # What this relies on
//
//   - Timestamps are those of the servers' clocks, which differ by less than the margin. A
//     marker at a version hides also a later put of that version, and a write with an old
//     timestamp would not be noticed. Rows whose newest cell is younger than the margin
//     wait, and rows whose cells carry the time of their points (OpenTSDB's
//     use_otsdb_timestamp) stay.
//   - A TSD that compacts the same row deletes columns, up to now. That masks points which
//     were written over between its reading and its deletion, OpenTSDB's own loss. With
//     this job nothing more is masked if a TSD takes less than the margin from one to the
//     other.
package compaction
