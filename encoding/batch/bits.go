package batch

import "unsafe"

// signed and unsigned are views of the same 64-bit words as another type: Arrow
// keeps raw bits in an int64 column.
func signed(b []uint64) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(b))), len(b))
}

func unsigned(b []int64) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b))
}
