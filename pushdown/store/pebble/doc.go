// Package pebble is the embedded store: the rows and cells of package store in
// one local pebble database, for laptops, tests, benchmarks and single-host
// installations. It is the only importer of pebble.
//
// # Keys
//
// One cell is one pebble key. The head orders tables and rows, the tail orders
// the cells of a row:
//
//	          head                              tail
//	┌───────┬────┬─────┬────┐ ┌────────┬────┬───────────┬────────────┬──────┐
//	│ table │ 00 │ row │ 00 │ │ family │ 00 │ qualifier │ length (3) │ 01   │
//	└───────┴────┴─────┴────┘ └────────┴────┴───────────┴────────────┴──────┘
//	                          ╰─────────────── length ──────────────────────╯
//
// Table and family names hold no zero byte, rows and qualifiers may hold any.
// The last four bytes are fixed: the length of the whole tail, big-endian, and
// the mark 01. A key without a tail ends with the row's 00 instead; such keys
// are never stored, they bound scans. Reading from the end, then, the border
// between head and tail is known without looking at a byte of row or qualifier.
//
// Heads compare as bytes, which sorts a row before every row that it is a
// prefix of: its closing 00 is the least byte there is. Within a head, tails
// compare as bytes without their last four. That is HBase's order: row, then
// family, then qualifier.
//
// The column 05 00 00 (OpenTSDB's appended points) of one series-hour, metric
// 000001, base time 1297573200 = 4D576550, tagk 000001, tagv 000002:
//
//	74 73 64 62 00                                     table tsdb
//	00 00 01 4d 57 65 50 00 00 01 00 00 02 00          row
//	74 00 05 00 00                                     family t, qualifier
//	00 00 09 01                                        tail of 9 bytes, mark
//
// # Values
//
//	Append  ┌────┬────────┐     Put  ┌────┬─────────────────┬───────┐
//	        │ 00 │ bytes  │          │ 01 │ ms since 1970(6)│ value │
//	        └────┴────────┘          └────┴─────────────────┴───────┘
//
// Appends are pebble merges. They are joined in the order of their writing,
// once, when pebble asks for the result; a Put that appends landed on joins
// them and loses its write time, for what the cell holds is younger than it.
//
// # Damage
//
// Open reads the journals before pebble does (package journal), which takes what
// is broken near an end for the end. Package disk lies between pebble and the
// files, and adds what makes a cut or missing file noticed. Nothing here ingests
// tables or excises keys: batches are numbered without a gap, by which a missing
// log is noticed.
//
// # Names kept for ever
//
// pebble writes the names of comparer and merger into the database and refuses
// to open it under others: downpour.cells.v1 and downpour.append.v1. FORMAT.md
// beside this file is the long form, with the catalogue of tables.
package pebble
