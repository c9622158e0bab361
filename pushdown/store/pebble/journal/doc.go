// Package journal reads pebble's two kinds of journal, write-ahead logs and MANIFEST
// files, and finds what is missing in them: the torn end that a crash leaves, or
// damage. It knows bytes only, no file and no store.
//
// # Form
//
// A journal consists of blocks of 32 KiB, which hold chunks; no chunk crosses the end
// of a block. A record is one chunk, or a first, any number of middle and a last one.
//
//	┌─────────┬──────────┬──────┬─────────────────────────────────────┬─────────┐
//	│ CRC (4) │ size (2) │ type │ logs: number (4), types 9-12:       │ payload │
//	│         │          │      │ also synced offset (8)              │         │
//	└─────────┴──────────┴──────┴─────────────────────────────────────┴─────────┘
//
//	types   full  first  middle  last
//	          1     2      3      4    MANIFEST
//	          5     6      7      8    log
//	          9    10     11     12    log, with the offset up to which the file
//	                                   was known to be on disk
//
// Numbers are little-endian. The CRC (Castagnoli, rotated by 15 bits, plus a282ead8)
// covers all that follows the size. A record ab cd of log 6, written when 28 (hex)
// bytes were on disk:
//
//	d7 cf 4e 97  02 00  09  06 00 00 00  28 00 00 00 00 00 00 00  ab cd
//
// A log that was closed ends with an end chunk: CRC and size 0, type 5, and the number
// that follows the log's own. If no header fits into the rest of a block, the rest is
// zeros.
//
// # Torn, or damaged
//
// Records are synced in their order, and nobody learns of a record before that. A
// crash may leave any of the sectors that were not synced: a sector that did not reach
// the disk is zeros from where the synced part ended. So a hole between records is
// damage (Hole.Damage) if a later chunk says that the hole's offset was on disk, or if
// the hole has no sector of zeros. Otherwise it may be torn.
package journal
