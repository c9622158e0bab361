// Package fsck checks rows of the data table and says how they are repaired. It is
// pure: a row goes in, findings and the cells to write and to delete come out.
//
//	00 00        = 05                  +0 s, integer on 1 byte
//	00 0B        = 40 A0 00 00         +0 s, float on 4 bytes, written later: a duplicate
//	01 0B        = 00 00 00 00 40 A0 00 00   +16 s, float on 4 bytes with OpenTSDB's old zeros
//	03 0B        = 11 22 33 44 40 A0 00 00   +48 s, the same length and no float at all
//
// With everything allowed this row becomes one cell:
//
//	00 00 01 0B  = 05 | 40 A0 00 00 | 00
//
// # What is kept
//
// A point is good if it can be read and no other value has its time. No repair loses a
// good point: values are validated first, and duplicates are resolved among those that
// are valid. OpenTSDB resolves first, so that a broken value that is older than a good
// one takes it along.
//
// A row is made one cell only if nothing in it is left unrepaired that would have to go
// into that cell. Cells that cannot be cut stay where they are. Append columns stay
// append columns. Single cells are repaired one by one where that suffices.
//
// Source: net.opentsdb.tools.Fsck.
package fsck
