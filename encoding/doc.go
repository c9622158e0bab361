// Package encoding reads and writes the bytes of OpenTSDB's tables: row keys,
// qualifiers, values, and the rows of the UID and meta tables. It is pure: it
// knows no clock, network or store. Functions named Append append to a slice.
// Functions named Parse return views into their input, and errors that name the
// field.
//
// The layout of a table (salt, widths of UIDs) is a value, Schema, because tables
// do not describe themselves. Names occur in the UID table only: everywhere else
// there are UIDs. All numbers are big-endian.
//
// # Data table, row key
//
// One row is one hour of one series:
//
//	+--------+------------+-----------+------------------------+-----
//	| salt   | metric UID | base time | tagk UID   | tagv UID  | …     pairs ascending
//	| 0 to 8 | 1 to 8     | 4 bytes   | 1 to 8     | 1 to 8    |       by tagk UID
//	+--------+------------+-----------+------------------------+-----
//
//	00 00 01 | 50 E2 27 00 | 00 00 01 00 00 01 | 00 00 02 00 00 02
//	metric 1 | 1356998400  | tagk 1 = tagv 1   | tagk 2 = tagv 2      default widths, no salt
//
//	01 | 00 00 00 01 | 50 E2 27 00 | 00 01 00 00 00 06 | 00 02 00 00 00 02
//	salt 1 | metric 1 | 1356998400 | tagk 1 = tagv 6   | tagk 2 = tagv 2   widths 4, 2, 4
//
// Keys compare as (salt, metric, base time, tag pairs): within a salt bucket, the rows
// of a metric's hour are adjacent. The salt is a hash of metric and tags, so that all
// hours of a series share a bucket. A key without salt and base time is a TSUID, a key
// without base time a span. See Schema and RowKey.
//
// # Data table, family t
//
// The length and the first byte of a qualifier say what a cell holds:
//
//	2 bytes, or 4 that begin with F   one point
//	other even lengths                compacted: several points
//	05 00 00                          append column: points in the order of their puts
//	01 and 2 or 4 bytes               annotation, JSON
//	06 and 2 or 4 bytes               histogram, see Histogram
//	other odd lengths                 skipped
//
// One point. The qualifier is the offset from the base time, a bit f that is 1 for
// a float, and LLL, the bytes of the value minus 1. The value is an integer on 1,
// 2, 4 or 8 bytes, or a float on 4 or 8:
//
//	seconds       oooooooooooo fLLL                          03 CF = 40 33 80 00 00 00 00 00
//	                                                         +60 s, float on 8 bytes, 19.5
//	milliseconds  1111 oooooooooooooooooooooo 00 fLLL        F0 01 38 8F = 3F F8 00 00 00 00 00 00
//	                                                         +1250 ms, float on 8 bytes, 1.5
//
// Compacted: all qualifiers, all values, and one byte that is 1 if seconds and
// milliseconds are mixed, else 0:
//
//	+----+----+-----+    +-----+-----+-----+----+
//	| q1 | q2 | …   |  = | v1  | v2  | …   | 00 |
//	+----+----+-----+    +-----+-----+-----+----+
//
//	F0 00 00 00 | F0 01 15 C0 | F0 02 2B 80 | …  =  EC | ED | F0 | … | 00
//	+0 ms       | +1111 ms    | +2222 ms         =  -20 | -19 | -16
//
// Append column: qualifier and value of each point, in the order of writing. Of two
// points with one time the later one wins:
//
//	05 00 00  =  00 10 | 01 | 12 D0 | 26 | … | 4B 11 | 00 95 | …
//	             +1 s  | 1  | +301 s| 38 |   | +1201 s | 149
//
// RowDecoder turns the cells of a row into points; its comment defines duplicates, and
// which damaged rows are read and which refused. See also Qualifier, Value,
// CellBuilder, AppendEntry, Annotation.
//
// # UID and meta table
//
//	73 79 73 2E 63 70 75 2E 6E 69 63 65   id:metrics    = 00 00 01       sys.cpu.nice has UID 1
//	00 00 01                              name:metrics  = 73 79 73 …     and back
//	00                                    id:metrics    = 00 00 00 00 00 00 00 06   last UID assigned
//	00 00 01 00 00 01 00 00 01 …          name:ts_ctr   = 00 00 00 00 00 00 00 03   points put
//
// See UIDMapping, CounterRow, MetaCounterQualifier.
//
// # Looking at bytes
//
// Schema.Describe prints a key or cell with offsets, bytes and meanings, and
// Schema.Dump does so for each line of JSON. The folder docs has a page for each
// format, which says what of it will never change.
package encoding
