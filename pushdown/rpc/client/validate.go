package client

import (
	"bytes"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/flight"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"google.golang.org/grpc/metadata"

	"downpour/encoding/batch"
	"downpour/pushdown/rpc/wire"
)

// capped is an allocator for what a peer sends: a length in a message is only a
// claim, and without a bound one of 2^60 bytes would end this process. Arrow's
// readers turn the panic into an error of the stream.
type capped struct{ batch.Allocator }

// Allocate refuses what no message of the permitted size can hold.
func (c capped) Allocate(size int) []byte {
	permit(size)
	return c.Allocator.Allocate(size)
}

// Reallocate refuses it, too.
func (c capped) Reallocate(size int, b []byte) []byte {
	permit(size)
	return c.Allocator.Reallocate(size, b)
}

// slack is what allocators add to a size, for alignment.
const slack = 1 << 10

func permit(size int) {
	if size < 0 || size > wire.MaxMessage+slack {
		panic(fmt.Sprintf("a buffer of %d bytes, want at most %d", size, wire.MaxMessage))
	}
}

// sound checks what Arrow does not: that lists and byte strings lie within their
// columns. A record that fails would panic later, far from the server that sent
// it.
func sound(r batch.Record) error {
	for i, column := range r.Columns() {
		if err := soundColumn(column); err != nil {
			return fmt.Errorf("%w: column %s: %w", wire.ErrServer, r.ColumnName(i), err)
		}
	}
	return nil
}

func soundColumn(a arrow.Array) error {
	data := a.Data()
	if a.Len() == 0 {
		return nil
	}
	n := data.Offset() + a.Len()
	if v := data.Buffers()[0]; v != nil && 8*v.Len() < n {
		return fmt.Errorf("%d bytes say which of %d values are null", v.Len(), n)
	}
	switch t := a.DataType().(type) {
	case *arrow.ListType:
		values := a.(*array.List).ListValues()
		if err := soundOffsets(data, n, values.Len()); err != nil {
			return err
		}
		return soundColumn(values)
	case *arrow.BinaryType, *arrow.StringType:
		return soundOffsets(data, n, bytesOf(data, 2))
	case arrow.FixedWidthDataType:
		if have := bytesOf(data, 1); 8*have < n*t.BitWidth() {
			return fmt.Errorf("%d bytes hold %d values of %d bits", have, n, t.BitWidth())
		}
	}
	return nil
}

// soundOffsets checks the n+1 borders of n values in a column of the given
// length.
func soundOffsets(data arrow.ArrayData, n, length int) error {
	if have := bytesOf(data, 1) / 4; have <= n {
		return fmt.Errorf("%d borders of %d values, want one more", have, n)
	}
	borders := arrow.Int32Traits.CastFromBytes(data.Buffers()[1].Bytes())[data.Offset() : n+1]
	last := int32(0)
	for i, b := range borders {
		if b < last || int(b) > length {
			return fmt.Errorf("border %d is %d, want %d to %d", i, b, last, length)
		}
		last = b
	}
	return nil
}

// bytesOf is the length of a column's buffer, 0 of one that is absent.
func bytesOf(data arrow.ArrayData, i int) int {
	if b := data.Buffers()[i]; b != nil {
		return b.Len()
	}
	return 0
}

// guard lets a stream begin only with the schema as our servers write it. Arrow
// believes the counts in a schema message and makes room for as many fields.
func guard(stream flight.FlightService_DoGetClient, schema *arrow.Schema) *guarded {
	return &guarded{FlightService_DoGetClient: stream, schema: schema}
}

type guarded struct {
	flight.FlightService_DoGetClient
	schema *arrow.Schema // nil once it has come
	ended  bool
	bytes  int64 // received
}

// Trailer is the stream's once it has ended, and nothing before: a reader that
// gives up earlier must not look at what is still being received.
func (g *guarded) Trailer() metadata.MD {
	if !g.ended {
		return nil
	}
	return g.FlightService_DoGetClient.Trailer()
}

// Recv is the stream's, but for a first message that is another one.
func (g *guarded) Recv() (*flight.FlightData, error) {
	m, err := g.FlightService_DoGetClient.Recv()
	g.ended = g.ended || err != nil
	g.bytes += int64(len(m.GetDataHeader()) + len(m.GetDataBody()))
	if err != nil || g.schema == nil {
		return m, err
	}
	if !bytes.Equal(m.GetDataHeader(), header(g.schema)) {
		return nil, fmt.Errorf("%w: the stream does not begin with the schema of batches, version %s", wire.ErrServer, batch.Version)
	}
	g.schema = nil
	return m, nil
}

// header is the message of a schema, as a stream begins with it.
func header(schema *arrow.Schema) []byte {
	var first firstMessage
	w := flight.NewRecordWriter(&first, ipc.WithSchema(schema))
	_ = w.Close() // writes the schema, if nothing came before
	return first.header
}

// firstMessage keeps the first message that is sent.
type firstMessage struct{ header []byte }

// Send keeps the message's header.
func (f *firstMessage) Send(m *flight.FlightData) error {
	if f.header == nil {
		f.header = bytes.Clone(m.GetDataHeader())
	}
	return nil
}
