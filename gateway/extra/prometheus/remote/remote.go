// Package remote is the messages of Prometheus' remote read, as bytes: requests are parsed, answers are appended. They
// are protocol buffers. A request and an answer of samples are one snappy block; an answer of chunks is a stream of
// frames.
//
//	0a 1a                        a query of 26 bytes
//	   08 e8 07                  from 1000 ms
//	   10 d0 0f                  to 2000 ms
//	   1a 12                     a matcher of 18 bytes: = (which is 0, and left out)
//	      12 08 5f5f6e616d655f5f    __name__
//	      1a 06 646973632e61        disc.a
//
// Source: Prometheus' prompb/remote.proto and types.proto.
package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/klauspost/compress/s2"
	"google.golang.org/protobuf/encoding/protowire"

	"downpour/gateway/extra/prometheus/message"
)

// Matcher is a condition on one label.
type Matcher struct {
	Type        int // of Prometheus' enumeration: 0 is =, 1 is !=, 2 is =~, 3 is !~
	Name, Value string
}

// Query asks for the series that satisfy all matchers.
type Query struct {
	Start, End int64 // ms since 1970, both inclusive
	Matchers   []Matcher
}

// ReadRequest is a request to read.
type ReadRequest struct {
	Queries []Query
	// Chunks says that the answer is to be a stream of chunks, and not one message of samples.
	Chunks bool
}

// Bounds of a request.
const (
	// MaxRequest bounds the bytes of a request, packed and unpacked.
	MaxRequest  = 1 << 20
	maxQueries  = 64
	maxMatchers = 256 // of a query
)

// The types of answers.
const (
	samples = 0
	chunks  = 1
)

// UnpackedLen returns how many bytes a snappy block says that it holds.
func UnpackedLen(packed []byte) (int, error) {
	n, err := s2.DecodedLen(packed)
	if err != nil {
		return 0, fmt.Errorf("cannot read the body as a snappy block: %w", err)
	}
	return n, nil
}

// Unpack returns what a snappy block holds. A block of more than limit bytes is refused before memory is taken for it.
func Unpack(packed []byte, limit int) ([]byte, error) {
	n, err := UnpackedLen(packed)
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, fmt.Errorf("the body unpacks to %d bytes, at most %d", n, limit)
	}
	body, err := s2.Decode(nil, packed)
	if err != nil {
		return nil, fmt.Errorf("cannot read the body as a snappy block: %w", err)
	}
	return body, nil
}

// Pack returns a snappy block.
func Pack(b []byte) []byte { return s2.EncodeSnappy(nil, b) }

// ParseRead parses a request that is unpacked.
func ParseRead(b []byte) (r ReadRequest, err error) {
	var wanted []uint64
	err = fields(b, func(n protowire.Number, v message.Value) error {
		switch n {
		case 1:
			q, err := parseQuery(v.Bytes)
			if err != nil {
				return err
			}
			if r.Queries = append(r.Queries, q); len(r.Queries) > maxQueries {
				return fmt.Errorf("more than %d queries in one request", maxQueries)
			}
		case 2:
			wanted = append(wanted, numbers(v)...)
		}
		return nil
	})
	if err != nil {
		return r, fmt.Errorf("cannot read the request: %w", err)
	}
	for _, kind := range wanted { // in the order of preference
		switch kind {
		case chunks:
			r.Chunks = true
			return r, nil
		case samples:
			return r, nil
		}
	}
	if len(wanted) > 0 {
		return r, fmt.Errorf("got the types of answers %v, want %d (samples) or %d (chunks)", wanted, samples, chunks)
	}
	return r, nil
}

func parseQuery(b []byte) (q Query, err error) {
	err = fields(b, func(n protowire.Number, v message.Value) error {
		switch n {
		case 1:
			q.Start = int64(v.Number)
		case 2:
			q.End = int64(v.Number)
		case 3:
			m, err := parseMatcher(v.Bytes)
			if err != nil {
				return err
			}
			if q.Matchers = append(q.Matchers, m); len(q.Matchers) > maxMatchers {
				return fmt.Errorf("more than %d matchers in one query", maxMatchers)
			}
		}
		return nil
	})
	return q, err
}

func parseMatcher(b []byte) (m Matcher, err error) {
	err = fields(b, func(n protowire.Number, v message.Value) error {
		switch n {
		case 1:
			if v.Number > 3 {
				return fmt.Errorf("got a matcher of the type %d, want 0 to 3", v.Number)
			}
			m.Type = int(v.Number)
		case 2:
			m.Name = string(v.Bytes)
		case 3:
			m.Value = string(v.Bytes)
		}
		return nil
	})
	return m, err
}

// numbers are those of a field that may be repeated in one.
func numbers(v message.Value) (all []uint64) {
	if v.Bytes == nil {
		return []uint64{v.Number}
	}
	for b := v.Bytes; len(b) > 0; {
		x, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return all
		}
		all, b = append(all, x), b[n:]
	}
	return all
}

var errCut = errors.New("a message is cut off or broken")

// fields calls each with the fields of a message.
func fields(b []byte, each func(protowire.Number, message.Value) error) error {
	for len(b) > 0 {
		number, v, rest, ok := message.Next(b)
		if !ok {
			return errCut
		}
		b = rest
		if err := each(number, v); err != nil {
			return err
		}
	}
	return nil
}

// appendMessage appends a field that is a message.
func appendMessage(dst []byte, number protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, number, protowire.BytesType), message)
}

func appendNumber(dst []byte, number protowire.Number, v int64) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, number, protowire.VarintType), uint64(v))
}

// AppendLabel appends a label of a series.
func AppendLabel(series []byte, name, text string) []byte {
	var l []byte
	l = protowire.AppendString(protowire.AppendTag(l, 1, protowire.BytesType), name)
	l = protowire.AppendString(protowire.AppendTag(l, 2, protowire.BytesType), text)
	return appendMessage(series, 1, l)
}

// AppendSample appends a sample of a series.
func AppendSample(series []byte, ms int64, v float64) []byte {
	var room [24]byte
	s := room[:0]
	if bits := math.Float64bits(v); bits != 0 {
		s = protowire.AppendFixed64(protowire.AppendTag(s, 1, protowire.Fixed64Type), bits)
	}
	return appendMessage(series, 2, appendNumber(s, 2, ms))
}

// AppendChunk appends a chunk of a series, whose bytes are XOR-encoded.
func AppendChunk(series []byte, first, last int64, data []byte) []byte {
	var c []byte
	c = appendNumber(c, 1, first)
	c = appendNumber(c, 2, last)
	c = appendNumber(c, 3, 1) // XOR
	return appendMessage(series, 2, appendMessage(c, 4, data))
}

// AppendSeries appends a series to the result of a query.
func AppendSeries(result, series []byte) []byte { return appendMessage(result, 1, series) }

// AppendResult appends the result of the next query to an answer of samples.
func AppendResult(answer, result []byte) []byte { return appendMessage(answer, 1, result) }

// FrameBytes is about how large a frame may be before the next one begins.
const FrameBytes = 1 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendFrame appends a frame of the stream: some series of a query, by its index. A series may be in several frames.
func AppendFrame(dst, series []byte, query int) []byte {
	message := appendNumber(series, 2, int64(query))
	dst = binary.AppendUvarint(dst, uint64(len(message)))
	dst = binary.BigEndian.AppendUint32(dst, crc32.Checksum(message, castagnoli))
	return append(dst, message...)
}
