package batch

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v15/arrow/ipc"
	flatbuffers "github.com/google/flatbuffers/go"
)

// streamWriter writes IPC messages in Arrow's stream format and adds metadata to
// record batches, which Arrow's own writer for Go cannot do. A message is
//
//	FF FF FF FF | length of the message, int32, a multiple of 8 | message | body
//
// and the stream ends with FF FF FF FF 00 00 00 00. The message is a flatbuffer, the
// table Message of Arrow's Message.fbs.
type streamWriter struct {
	w        io.Writer
	metadata [][2]string // of the next record batches
}

// Start does nothing: the schema is the first payload.
func (s *streamWriter) Start() error { return nil }

// endMark ends a complete stream.
var endMark = []byte{0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0}

// Close writes the end mark.
func (s *streamWriter) Close() error {
	_, err := s.w.Write(endMark)
	return err
}

// WritePayload writes one message.
func (s *streamWriter) WritePayload(p ipc.Payload) error {
	message := p.Meta().Bytes()

	// The metadata is of batches, not of the schema and the dictionaries before them.
	if messageType(message) == recordBatchType {
		message = withMetadata(message, s.metadata)
	}

	// The frame of streamWriter's comment. Its length includes the padding.
	padded := (len(message) + 7) &^ 7
	frame := make([]byte, 8+padded)
	binary.LittleEndian.PutUint32(frame, 0xFFFFFFFF)
	binary.LittleEndian.PutUint32(frame[4:], uint32(padded))
	copy(frame[8:], message)

	if _, err := s.w.Write(frame); err != nil {
		return fmt.Errorf("batch: cannot write message of stream: %w", err)
	}
	return p.SerializeBody(s.w)
}

// Slots of the tables in Arrow's Message.fbs, as offsets in the table's vtable: slot
// n has the offset 4 + 2n.
const (
	messageVersion, messageHeaderType, messageHeader, messageBodyLength = 4, 6, 8, 10

	batchLength, batchNodes, batchBuffers, batchCompression = 4, 6, 8, 10

	compressionCodec = 4 // the method is always 0, which a flatbuffer leaves out

	recordBatchType = 3 // of the union MessageHeader
)

// rootTable returns the table Message.
func rootTable(message []byte) flatbuffers.Table {
	return flatbuffers.Table{Bytes: message, Pos: flatbuffers.GetUOffsetT(message)}
}

// messageType returns the type of a message's header.
func messageType(message []byte) byte {
	t := rootTable(message)
	return t.GetByteSlot(messageHeaderType, 0)
}

// withMetadata returns a record batch message with key-value metadata added. The
// other fields are copied, because a flatbuffer cannot be changed in place.
func withMetadata(message []byte, metadata [][2]string) []byte {
	m := rootTable(message)
	var header flatbuffers.Table
	m.Union(&header, flatbuffers.UOffsetT(m.Offset(messageHeader)))

	// A flatbuffer is built from its end: tables and vectors that a table refers to
	// must be complete before it is begun.
	b := flatbuffers.NewBuilder(len(message))
	pairs := appendPairs(b, metadata)
	batch := copyBatch(b, header)

	// The slots of Message: version, type of the header, header, length of the body, metadata.
	b.StartObject(5)
	b.PrependInt16Slot(0, m.GetInt16Slot(messageVersion, 0), 0)
	b.PrependByteSlot(1, recordBatchType, 0)
	b.PrependUOffsetTSlot(2, batch, 0)
	b.PrependInt64Slot(3, m.GetInt64Slot(messageBodyLength, 0), 0)
	b.PrependUOffsetTSlot(4, pairs, 0)
	b.Finish(b.EndObject())
	return b.FinishedBytes()
}

// appendPairs writes a vector of KeyValue tables.
func appendPairs(b *flatbuffers.Builder, metadata [][2]string) flatbuffers.UOffsetT {
	offsets := make([]flatbuffers.UOffsetT, len(metadata))
	for i, kv := range metadata {
		key, value := b.CreateString(kv[0]), b.CreateString(kv[1])
		b.StartObject(2)
		b.PrependUOffsetTSlot(0, key, 0)
		b.PrependUOffsetTSlot(1, value, 0)
		offsets[i] = b.EndObject()
	}
	return b.CreateVectorOfTables(offsets)
}

// copyBatch copies a RecordBatch table into b.
func copyBatch(b *flatbuffers.Builder, t flatbuffers.Table) flatbuffers.UOffsetT {
	nodes := copyPairs(b, t, batchNodes)
	buffers := copyPairs(b, t, batchBuffers)

	var compression flatbuffers.UOffsetT
	// Only a compressed batch has this field.
	if o := flatbuffers.UOffsetT(t.Offset(batchCompression)); o != 0 {
		c := flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(o + t.Pos)}
		b.StartObject(2)
		b.PrependByteSlot(0, c.GetByteSlot(compressionCodec, 0), 0)
		compression = b.EndObject()
	}

	b.StartObject(4)
	b.PrependInt64Slot(0, t.GetInt64Slot(batchLength, 0), 0)
	b.PrependUOffsetTSlot(1, nodes, 0)
	b.PrependUOffsetTSlot(2, buffers, 0)
	b.PrependUOffsetTSlot(3, compression, 0)
	return b.EndObject()
}

// copyPairs copies a vector of structs of two int64, as FieldNode and Buffer are. It returns 0 if
// there is no vector.
func copyPairs(b *flatbuffers.Builder, t flatbuffers.Table, slot flatbuffers.VOffsetT) flatbuffers.UOffsetT {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return 0
	}

	n, at := t.VectorLen(o), t.Vector(o)
	b.StartVector(16, n, 8)

	// From the last element to the first, and in each from the last field.
	for i := n - 1; i >= 0; i-- {
		pos := at + flatbuffers.UOffsetT(16*i)
		b.PrependInt64(t.GetInt64(pos + 8))
		b.PrependInt64(t.GetInt64(pos))
	}

	return b.EndVector(n)
}
