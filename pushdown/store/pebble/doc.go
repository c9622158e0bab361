// Package pebble is the embedded store: the rows and cells of package store in
// one local pebble database, for laptops, tests, benchmarks and single-host
// installations. It is the only importer of pebble.
//
// # Keys
//
// One cell is one pebble key. The prefix, as pebble calls it, orders tables and rows,
// the suffix orders the cells of a row:
//
//	         prefix                             suffix
//	┌───────┬────┬─────┬────┐ ┌────────┬────┬───────────┬────────────┬──────┐
//	│ table │ 00 │ row │ 00 │ │ family │ 00 │ qualifier │ length (3) │ 01   │
//	└───────┴────┴─────┴────┘ └────────┴────┴───────────┴────────────┴──────┘
//	                          ╰─────────────── length ──────────────────────╯
//
// Table and family names hold no zero byte; rows and qualifiers may hold any byte. The
// last four bytes are fixed: the length of the whole suffix, big-endian, and 01. A key
// without a suffix ends with the row's 00 instead; such keys are never stored, they
// bound scans. A reader that starts at the end of a key therefore finds the border
// between prefix and suffix without looking at a byte of row or qualifier.
//
// Prefixes compare as bytes, which sorts a row before every row that begins with it:
// its closing 00 is the least byte there is. Within a prefix, suffixes compare as bytes
// without their last four. That is HBase's order: row, then family, then qualifier.
//
// The column 05 00 00 (OpenTSDB's appended points) of one series-hour, metric
// 000001, base time 1297573200 = 4D576550, tagk 000001, tagv 000002:
//
//	74 73 64 62 00                                     table tsdb
//	00 00 01 4d 57 65 50 00 00 01 00 00 02 00          row
//	74 00 05 00 00                                     family t, qualifier
//	00 00 09 01                                        suffix of 9 bytes, 01
//
// # Values
//
//	Append  ┌────┬────────┐     Put  ┌────┬─────────────────┬───────┐
//	        │ 00 │ bytes  │          │ 01 │ ms since 1970(6)│ value │
//	        └────┴────────┘          └────┴─────────────────┴───────┘
//	Sealed  ┌────┬────┬────────┬────────┬─────────────────────┐
//	        │ 02 │ FF │ length │ sealed │ what came later     │
//	        └────┴────┴────────┴────────┴─────────────────────┘
//
// Appends are pebble merges. They are joined in the order in which they were written
// when pebble asks for the result. A put that was appended to is joined with the
// appends and loses its write time, because what the cell holds is younger than it.
//
// Store.Seal writes append columns of old rows in their sealed form (see encoding.Sealer). The package unseals
// them for those who read, unless a scan takes them as they are, so that nobody else need know.
//
// # Elements
//
// Each block of a table carries the set of the tag pairs of its rows' keys, as a property in the
// index. Scans with a pattern skip blocks by it; see elements.go for why no row is missed.
//
// # Damage
//
// Open reads the journals before pebble does (package journal), because pebble takes
// damage near the end of a journal for its end. Package disk stands between pebble and
// the files and adds what shows later that a file was cut or is missing. Batches are
// numbered without a gap, because nothing here ingests tables or excises keys; a gap
// shows that a log is missing.
//
// # Names kept for ever
//
// Pebble writes the names of comparer and merger into the database and refuses to open
// it under others: downpour.cells.v1 and downpour.append.v1. Older releases refuse a
// directory with sealed columns by its marker, see package disk. FORMAT.md in this folder
// is the long form, with the catalogue of tables.
package pebble
