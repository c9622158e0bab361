// Package hbase implements store.Store on an HBase cluster. It and the packages below it
// are the only ones that use gohbase: cellblock < calls < regions < unchanged < hbase.
// They take from gohbase the framing of calls on a connection, the protobuf messages,
// the encoding of filters and the look-up in ZooKeeper. Routing, waiting and retrying
// are done here, because gohbase's own client handles trouble badly: after a lost reply
// it requests more rows of a scanner again, without the sequence number by which a
// server would notice, and so loses rows silently; it backs off for up to 30 s; without
// a deadline it never gives up, and it leaves goroutines running when it is closed
// before they end.
//
// # The path of a put
//
//   - apply.go: Apply groups the mutations by row and encodes the cells of each
//     row as one operation, an action.
//   - package cellblock: the layout of a cell.
//   - multi.go: the actions go out in rounds. A round sends each server one Multi
//     call at a time until each action has been sent once; what failed and may
//     succeed later is sent in the next round.
//   - window.go: limits the mutations that a region gets in one call. A region that
//     refuses writes gets one until it accepts it.
//   - package regions: finds the region and the server of each row, sends the call there,
//     forgets the location that proved wrong, and decides about another attempt.
//   - package calls: the only connection to that server, and a call on it, through gohbase;
//     the wait for the reply, and the class of a failure.
//
// Increment and CompareAndPut (atomic.go) change one cell with a Mutate call,
// Get (get.go) reads rows with Multi calls, and Replace (replace.go) changes rows if
// they are as they were read.
//
// # The path of a scan
//
//   - scan.go: Scan reads region after region. The server prepares its next reply
//     while the caller works on the last one. After a failure the scan continues
//     after the last row that was delivered whole.
//   - filter.go and rowregex.go: translate the row filter: key ranges (each region gets
//     its own) and a regular expression for tags. Ranges of columns that are
//     prefixes, as those of rollups are, become one filter.
//   - scanrequest.go: the requests that open, continue and close a server's
//     scanner.
//   - packages regions and calls: as for a put.
//   - package cellblock: decodes the cell blocks of replies and joins the parts of a
//     row, in the goroutine that reads the rows. While there are few cells of other
//     columns it drops those in place of a filter.
//
// drain.go measures how fast a scan can be.
//
// # Version tokens and marks
//
// Package unchanged proves that no row of a key range has changed. Version, Mark
// and Unchanged are methods of its Prover.
//
// # The rest
//
// store.go opens and closes a Store, config.go is its configuration, admin.go creates
// tables, errors.go lists the errors. inspect.go finds what a version of HBase lacks,
// rights.go whether all of a table may be read.
//
// # Fields beyond gohbase's schema
//
// Scan.readType = PREAD travels as the bytes b8 01 02, and the row limit of a
// ScanRequest as 58 and a varint; the messages carry both as unknown fields.
package hbase
