// Package column is the compact form of points of one row: a block, which holds times, types and
// values as columns. The embedded store keeps old hours so, in the place of the entries of an
// append column. A block gives back the same points, to the last bit: types and lengths of values,
// seconds and milliseconds, payloads of NaN, and -0.
//
// The times of a block ascend. All integers of more than one byte are varints (encoding/binary's,
// zigzag where they have a sign), unless said otherwise.
//
// # Block
//
//	┌────┬────────┬───────┬───────┬───────┬──────────┬────────┬────────────┐
//	│ FF │ length │ count │ types │ times │ integers │ floats │ CRC-32C (4)│
//	└────┴────────┴───────┴───────┴───────┴──────────┴────────┴────────────┘
//
// FF begins no entry: as a qualifier it would be an offset beyond the hour. So blocks and entries
// may follow each other in one cell. The length is that of all that follows it, count is 1 to
// 65,536, and the checksum (little-endian) is of everything before it, FF included. Six points, ten
// seconds apart, with the integers 300 to 305, each on two bytes:
//
//	FF 10  06  00     00 00 0A          00 D8 04 03 88 C6 02   4C AF 9F 2E
//	       6   kind 0 even, +0 s, 10 s  from 300, 3 bits each  CRC
//
// # Types
//
// Runs of points of one kind. A kind is a byte: 0 an integer on the shortest length, 1 to 4
// integers on 1, 2, 4 and 8 bytes, 5 a float on 4 bytes if it loses nothing by that and else on 8, 6
// and 7 floats on 4 and 8 bytes; plus 8 if the time has the milliseconds form. Plus 80, the number
// of its points follows, and then another run; the last run has the rest.
//
// # Times
//
// One byte: 0 points at equal distances, 1 others, plus 2 if numbers are milliseconds, which are
// else seconds. Then the first offset from the row's base time and, for more than one point,
//
//	equal distances   the distance
//	others            a unit, the least distance in units, and packed what the distances
//	                  have more than that, in units
//
// # Integers
//
// All integers of the block in their order, if it has any. One byte, then
//
//	0   the least one; packed what each has more
//	1   the first one; the least difference of two neighbours; packed what each difference has more
//
// Differences are taken if they save a fifth: sums are computed from form 0 without decoding each value.
//
// # Floats
//
// All floats of the block, if it has any. One byte: the form, plus 8 if all of them have the kind
// 6 and are words of 4 bytes, else of 8. Words are little-endian.
//
//	0   plain      the words
//	1   XOR        the first word; a byte, the number of low bits that are 0 in each difference;
//	               packed each word XOR the one before it, without these
//	2   decimals   a byte, the exponent e, at most 22; integers i as above; the values are
//	               i / 10^e, correctly rounded; the number of exceptions, and for each the
//	               points between it and the one before it, and its word
//
// # Packed
//
// A byte w, 0 to 56 or 64, then n numbers of w bits each: number i begins at bit i·w, counted from
// the least bit of the first byte. If w has 80 added, the higher bits of some numbers follow: how
// many these are, and for each the numbers between it and the one before it, and its higher bits.
package column
