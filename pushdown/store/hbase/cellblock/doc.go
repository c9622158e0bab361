// Package cellblock is the cells of calls and replies as bytes: their layout, and the
// rows that the replies of a scan make. It knows no server and no connection. What it
// returns are views of the block that it was given, so a block must not change as long
// as a row of it is in use.
//
// # The layout
//
// Cells travel after the reply's message in one block, one after another, in
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
// A reply's message has the division of the block: cells_per_result holds the number of
// cells of each row, or of each part of a row, and more_results_in_region whether the
// region has more. An empty reply does not end a scan: it may be a heartbeat of a
// server that has found nothing yet.
//
// Source: KeyValueCodec, KeyValue and KeyValue.Type of HBase 2.5.
package cellblock
