// Package journal reads pebble's two kinds of journal, write-ahead logs and
// MANIFEST files, and tells what is missing in them: the torn end that a crash
// leaves, or damage. It knows bytes only, no file and no store.
//
// # Form
//
// A journal is blocks of 32 KiB that hold chunks; no chunk crosses a block. A
// record is one chunk, or a first, any number of middle and a last one.
//
//	┌─────────┬──────────┬──────┬─────────────────────────────────────┬─────────┐
//	│ CRC (4) │ size (2) │ type │ logs: number (4), types 9-12:       │ payload │
//	│         │          │      │ also synced offset (8)              │         │
//	└─────────┴──────────┴──────┴─────────────────────────────────────┴─────────┘
//
//	types   full  first  middle  last
//	          1     2      3      4    MANIFEST
//	          5     6      7      8    log
//	          9    10     11     12    log, with the offset known to be on disk
//
// Numbers are little-endian. The CRC (Castagnoli, rotated by 15 bits, plus
// a282ead8) is of all that follows the size. A record ab cd of log 6, written
// when 28 (hex) bytes were on disk:
//
//	d7 cf 4e 97  02 00  09  06 00 00 00  28 00 00 00 00 00 00 00  ab cd
//
// A log that was closed ends with a mark: CRC and size 0, type 5, the number
// that follows its own. What is left of a block when no header fits is zeros.
//
// # Torn, or damaged
//
// Records are synced in their order, and nobody is told of one that is not. A
// crash may leave any part of what was not synced, in sectors: one that did not
// reach the disk is zeros from where the synced part ended. So a hole between
// records is damage, a Hole with Damage set, if a chunk behind it says that the
// offset was on disk, or if it holds no sector of zeros. Else it may be torn.
package journal
