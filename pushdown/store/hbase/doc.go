// Package hbase is store.Store on an HBase cluster. It is the only package
// that knows gohbase, and it takes from it what is hard and well tried: the
// framing of calls on a connection, the protocol's messages, the filters'
// encodings and the look-up in ZooKeeper. Routing, waiting and trying again
// are done here, because of what gohbase's own client does in trouble: it asks
// a scanner for more rows again after a lost reply, without the sequence
// number by which a server would notice, and so loses rows silently; it backs
// off for up to 30 s; it never gives up without a deadline, and leaves
// goroutines behind when it is closed meanwhile.
//
// # Scans
//
// A scan is a chain of calls to region after region (scan.go). Replies are
// taken as the bytes that came and decoded in the goroutine that reads them,
// while the server already prepares the next reply. After any fault a scan
// goes on behind the last row it has delivered whole.
//
// # The cell block
//
// Cells travel behind the reply's message in one block, one after another, in
// the layout of HBase's KeyValueCodec. All numbers are big-endian. This is a
// cell as HBase 2.5.11 sent it: metric 000001, hour 52cb4dd0, tagk 000001,
// tagv 000007; family t; qualifier 0380 (56 s, one byte); value 64.
//
//	00000025                   length of all that follows: 37
//	0000001c                   length of the key: 28
//	00000001                   length of the value: 1
//	000d                       length of the row: 13     ┐
//	00000152cb4dd0000001000007 row                       │
//	01                         length of the family: 1   │
//	74                         family "t"                │ key
//	0380                       qualifier, the key's rest │
//	000001434af487bb           time of the write, ms     │
//	04                         type: put                 ┘
//	64                         value
//
// A reply's message says how the block is divided: cells_per_result holds the
// number of cells of each row, or of each piece of a row, and
// more_results_in_region whether the region has more. An empty reply is no
// end: it may be a heartbeat of a server that has found nothing yet.
//
// # Fields beyond gohbase's schema
//
// Scan.readType = PREAD travels as the bytes b8 01 02, and the row limit of a
// ScanRequest as 58 and a varint; the messages carry both as unknown fields.
package hbase
