package batch

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow/ipc"
)

// Encode returns a record with its schema as bytes that can be cached and decoded
// any number of times: an uncompressed Arrow IPC stream.
func Encode(r Record) ([]byte, error) {
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(r.Schema()))
	if err := errors.Join(w.Write(r), w.Close()); err != nil {
		return nil, fmt.Errorf("batch: cannot encode record: %w", err)
	}
	return b.Bytes(), nil
}

// Decode returns the record that Encode was given, equal bit by bit. The caller
// releases it.
func Decode(b []byte, mem Allocator) (Record, error) {
	r, err := ipc.NewReader(bytes.NewReader(b), ipc.WithAllocator(mem))
	if err != nil {
		return nil, fmt.Errorf("batch: cannot decode record: %w", err)
	}
	defer r.Release()
	if !r.Next() {
		return nil, fmt.Errorf("batch: cannot decode record: none in %d bytes: %w", len(b), r.Err())
	}

	// The record belongs to the reader, which is released on return.
	record := r.Record()
	record.Retain()
	return record, nil
}
