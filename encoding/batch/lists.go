package batch

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

// appendList adds one list with the given elements to a list builder.
func appendList[B array.Builder, T any](b array.Builder, values []T, add func(B, []T, []bool)) {
	list := b.(*array.ListBuilder)
	list.Append(true)
	add(list.ValueBuilder().(B), values, nil)
}

// listOf is a list column over a flat column of fixed-width values.
type listOf[T any] struct {
	list *array.List
	flat []T
}

// lists returns a list column of a record. flat gives the values of the column of
// elements.
func lists[A arrow.Array, T any](r Record, col int, flat func(A) []T) listOf[T] {
	l := r.Column(col).(*array.List)
	return listOf[T]{l, flat(l.ListValues().(A))}
}

// at is the list of row i, a view.
func (l listOf[T]) at(i int) []T {
	start, end := l.list.ValueOffsets(i)
	return l.flat[start:end]
}

// appendBools appends the list of row i; Arrow keeps its elements as bits.
func appendBools(dst []bool, l *array.List, i int) []bool {
	start, end := l.ValueOffsets(i)
	flat := l.ListValues().(*array.Boolean)
	for j := start; j < end; j++ {
		dst = append(dst, flat.Value(int(j)))
	}
	return dst
}

// appendBinaries appends views of the elements of the list of row i.
func appendBinaries(dst [][]byte, l *array.List, i int) [][]byte {
	start, end := l.ValueOffsets(i)
	flat := l.ListValues().(*array.Binary)
	for j := start; j < end; j++ {
		dst = append(dst, flat.Value(int(j)))
	}
	return dst
}
