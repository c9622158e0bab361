package batch

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow/ipc"
)

// Encode writes a record with its schema as bytes of their own, which can be kept
// and read any number of times: an Arrow IPC stream, uncompressed.
func Encode(r Record) ([]byte, error) {
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(r.Schema()))
	if err := errors.Join(w.Write(r), w.Close()); err != nil {
		return nil, fmt.Errorf("batch: encode: %w", err)
	}
	return b.Bytes(), nil
}

// Decode reads what Encode wrote, bit by bit the same record. Who calls it
// releases the record.
func Decode(b []byte, mem Allocator) (Record, error) {
	r, err := ipc.NewReader(bytes.NewReader(b), ipc.WithAllocator(mem))
	if err != nil {
		return nil, fmt.Errorf("batch: decode: %w", err)
	}
	defer r.Release()
	if !r.Next() {
		return nil, fmt.Errorf("batch: decode: no record in %d bytes: %w", len(b), r.Err())
	}
	record := r.Record()
	record.Retain()
	return record, nil
}
