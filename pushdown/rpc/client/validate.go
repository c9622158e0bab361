package client

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/flight"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"google.golang.org/grpc/metadata"

	"downpour/encoding/batch"
	"downpour/pushdown/rpc/wire"
)

// cappedAllocator allocates memory for what a peer sends. A length in a message is
// only a claim: without a bound, one of 2^60 bytes would end this process. It panics
// above the bound; Arrow's readers turn that into an error of the stream.
type cappedAllocator struct{ batch.Allocator }

// Allocate panics if no message of the permitted size can hold so many bytes.
func (c cappedAllocator) Allocate(size int) []byte {
	checkSize(size)
	return c.Allocator.Allocate(size)
}

// Reallocate panics as Allocate does.
func (c cappedAllocator) Reallocate(size int, b []byte) []byte {
	checkSize(size)
	return c.Allocator.Reallocate(size, b)
}

// allocatorSlack is what allocators add to a size, for alignment.
const allocatorSlack = 1 << 10

func checkSize(size int) {
	if size < 0 || size > wire.MaxMessage+allocatorSlack {
		panic(fmt.Sprintf("a buffer of %d bytes, want at most %d", size, wire.MaxMessage))
	}
}

// validate checks what Arrow does not: that lists and byte strings are within their columns. An
// invalid record would cause a panic later, where its server is no longer known.
func validate(r batch.Record) error {
	for i, column := range r.Columns() {
		if err := validateColumn(column); err != nil {
			return fmt.Errorf("%w: column %s: %w", wire.ErrServer, r.ColumnName(i), err)
		}
	}
	return nil
}

// validateColumn checks a column and the values of its lists.
func validateColumn(a arrow.Array) error {
	data := a.Data()
	// The buffers of an empty column are not read, and may be absent.
	if a.Len() == 0 {
		return nil
	}

	// The null bitmap has one bit for each value.
	n := data.Offset() + a.Len()
	if v := data.Buffers()[0]; v != nil && 8*v.Len() < n {
		return fmt.Errorf("%d bytes say which of %d values are null", v.Len(), n)
	}

	switch t := a.DataType().(type) {
	case *arrow.ListType:
		values := a.(*array.List).ListValues()
		if err := validateOffsets(data, n, values.Len()); err != nil {
			return err
		}
		return validateColumn(values)
	case *arrow.BinaryType, *arrow.StringType:
		return validateOffsets(data, n, bufferLen(data, 2))
	case arrow.FixedWidthDataType:
		if have := bufferLen(data, 1); 8*have < n*t.BitWidth() {
			return fmt.Errorf("%d bytes hold %d values of %d bits", have, n, t.BitWidth())
		}
	}
	return nil
}

// validateOffsets checks the borders of the values up to the n-th in a column of the given
// length: ascending, and within the column. Values begin at data's offset, and have one
// border more than there are values.
func validateOffsets(data arrow.ArrayData, n, length int) error {
	if have := bufferLen(data, 1) / 4; have <= n {
		return fmt.Errorf("%d borders of %d values, want one more", have, n)
	}

	borders := arrow.Int32Traits.CastFromBytes(data.Buffers()[1].Bytes())[data.Offset() : n+1]
	last := int32(0)
	for i, b := range borders {
		if b < last || int(b) > length { //fault:borders-in-a-message-believed TestClient_badBatches
			return fmt.Errorf("border %d is %d, want %d to %d", i, b, last, length)
		}
		last = b
	}
	return nil
}

// bufferLen returns the length in bytes of a column's buffer, 0 if it is absent.
func bufferLen(data arrow.ArrayData, i int) int {
	if b := data.Buffers()[i]; b != nil {
		return b.Len()
	}
	return 0
}

// schemaGuard is a stream that must begin with the schema exactly as pushdown servers
// write it, of this release or of the one before. Arrow trusts the counts in a schema message and
// would allocate memory for as many fields.
type schemaGuard struct {
	flight.FlightService_DoGetClient
	schema *arrow.Schema // nil once it was received
	ended  bool
	bytes  int64 // received
}

// Trailer returns the stream's trailer once the stream has ended, and nil before. A
// reader that gives up earlier must not read what is still being received.
func (g *schemaGuard) Trailer() metadata.MD {
	if !g.ended {
		return nil
	}
	return g.FlightService_DoGetClient.Trailer()
}

// Recv returns the next message. It returns an error if the first one is not exactly the
// schema: Arrow would trust the counts in another one, and allocate as much.
func (g *schemaGuard) Recv() (*flight.FlightData, error) {
	m, err := g.FlightService_DoGetClient.Recv()
	g.ended = g.ended || err != nil
	g.bytes += int64(len(m.GetDataHeader()) + len(m.GetDataBody()))
	if err != nil || g.schema == nil { // nil once the first message was received
		return m, err
	}

	before := batch.AsPrevious(g.schema)
	switch {
	case before != nil && //fault:batches-of-the-version-before-unread TestServerBefore
		bytes.Equal(m.GetDataHeader(), schemaMessage(before)):
		// The batches after it are alike, and the readers know one version.
		m.DataHeader = schemaMessage(batch.FromPrevious(before))
	case !bytes.Equal(m.GetDataHeader(), schemaMessage(g.schema)):
		return nil, fmt.Errorf("%w: the stream does not begin with the schema of batches, version %s", wire.ErrServer,
			batch.Version)
	}
	g.schema = nil
	return m, nil
}

// schemaMessages are the results of schemaMessage, by *arrow.Schema: there are seven.
var schemaMessages sync.Map

// schemaMessage returns the header of the message with which a stream of the schema
// begins. schema is one of package batch's, which never change.
func schemaMessage(schema *arrow.Schema) []byte {
	if known, ok := schemaMessages.Load(schema); ok {
		return known.([]byte)
	}
	var first firstMessage
	w := flight.NewRecordWriter(&first, ipc.WithSchema(schema))
	_ = w.Close() // writes the schema, because no batch was written
	schemaMessages.Store(schema, first.header)
	return first.header
}

// firstMessage keeps the header of the first message that is sent.
type firstMessage struct{ header []byte }

// Send keeps the message's header.
func (f *firstMessage) Send(m *flight.FlightData) error {
	if f.header == nil {
		f.header = bytes.Clone(m.GetDataHeader())
	}
	return nil
}
