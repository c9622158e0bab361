// Package remotewrite reads the messages of Prometheus' remote write, version 1, in place: a request is a list of
// series, and names and samples are decoded one by one, as package intake wants them. Exemplars and metadata are passed
// over.
//
//	0a 2a                              a series of 42 bytes
//	   0a 0e                           a label of 14 bytes
//	      0a 08 5f5f6e616d655f5f       __name__
//	      12 02 7570                   up
//	   0a 0c                           a label of 12 bytes
//	      0a 03 6a6f62                 job
//	      12 05 6e6f646531             node1
//	   12 0a                           a sample of 10 bytes
//	      09 000000000000f03f 10 64    1 at 100 ms
//
// Source: Prometheus' prompb/remote.proto and types.proto.
package remotewrite

import (
	"errors"
	"fmt"
	"math"
	"mime"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"

	"downpour/encoding"
	"downpour/gateway/extra/prometheus/intake"
)

// MaxBody bounds the bytes of a request, packed and unpacked.
const MaxBody = 32 << 20

// Fields of messages.
const (
	seriesField    = 1 // of a request
	labelField     = 1 // of a series
	sampleField    = 2
	histogramField = 4
)

// Content types of requests.
const (
	contentType = "application/x-protobuf"
	version1    = "prometheus.WriteRequest"
)

// CheckType returns an error for a request whose headers say that it is not of version 1. Senders that prefer another
// version fall back to this one when they are refused.
func CheckType(kind, encoding string) error {
	if kind != "" {
		media, params, err := mime.ParseMediaType(kind)
		if err != nil || media != contentType || params["proto"] != "" && params["proto"] != version1 {
			return fmt.Errorf("got Content-Type %q, want %s;proto=%s: remote write of version 1", kind, contentType,
				version1)
		}
	}
	if encoding != "" && encoding != "snappy" {
		return fmt.Errorf("got Content-Encoding %q, want snappy", encoding)
	}
	return nil
}

// Request is a request that is read in place.
type Request struct {
	body   []byte
	series []span
	points int
}

// span is where a series is in the body.
type span struct{ from, to uint32 }

// spanBytes is the memory of a span in a list that has grown.
const spanBytes = 3 * 8

// ErrHistogram refuses native histograms.
var ErrHistogram = errors.New("native histograms are not supported: OpenTSDB's tables hold numbers; send classic ones")

var errBroken = errors.New("a message is cut off or broken")

// Parse checks that a body, unpacked, is a request, and returns it; the body must not change. It calls reserve before
// it takes memory, and returns its error.
func Parse(body []byte, reserve func(bytes int64) error) (*Request, error) {
	body = body[:len(body):len(body)]
	r := &Request{body: body}
	if len(body) > MaxBody { // positions are 32 bits
		return nil, fmt.Errorf("the request has %d bytes, at most %d", len(body), MaxBody)
	}
	reserved := 0
	err := fields(body, func(number protowire.Number, v value) error {
		if number != seriesField {
			return nil
		}
		points, err := check(v)
		if err != nil || points == 0 {
			return err
		}
		if len(r.series) == reserved {
			more := max(1024, reserved)
			if err := reserve(int64(more) * spanBytes); err != nil {
				return err
			}
			reserved += more
		}
		from := len(body) - cap(v.bytes) // a part of the body whose capacity reaches to the end
		r.series = append(r.series, span{uint32(from), uint32(from + len(v.bytes))})
		r.points += points
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the request: %w", err)
	}
	return r, nil
}

// check checks a series and returns how many points it has.
func check(series value) (points int, err error) {
	if series.kind != protowire.BytesType {
		return 0, errBroken
	}
	err = fields(series.bytes, func(number protowire.Number, v value) error {
		switch number {
		case labelField:
			_, _, err := label(v)
			return err
		case sampleField:
			points++
			_, err := sample(v)
			return err
		case histogramField:
			points++
			return nil
		}
		return nil
	})
	return points, err
}

// Series is how many series have points.
func (r *Request) Series() int { return len(r.series) }

// Points is how many points there are.
func (r *Request) Points() int { return r.points }

func (r *Request) of(i int) []byte { return r.body[r.series[i].from:r.series[i].to] }

const nameLabel = "__name__"

// Key sets k to the names of series i.
func (r *Request) Key(i int, k *intake.Key) error {
	metric, named := "", 0
	_ = fields(r.of(i), func(number protowire.Number, v value) error { // checked before
		if number == labelField {
			if name, text, _ := label(v); name == nameLabel {
				metric = text
				named++
			}
		}
		return nil
	})
	if err := k.Reset(metric); err != nil {
		return err
	}
	if named > 1 {
		return errTwoNames
	}
	return fields(r.of(i), func(number protowire.Number, v value) error {
		if number != labelField {
			return nil
		}
		name, text, _ := label(v)
		if name == nameLabel {
			return nil
		}
		if k.Tags() == maxLabels {
			return fmt.Errorf("more than %d labels", maxLabels)
		}
		return k.Add(name, text)
	})
}

// maxLabels is the most labels that are looked at: a row key has at most as many tags.
const maxLabels = 255

var errTwoNames = fmt.Errorf("the label %s is there twice", nameLabel)

// Each calls yield with the points of series i.
func (r *Request) Each(i int, yield func(intake.Point) bool) {
	_ = fields(r.of(i), func(number protowire.Number, v value) error {
		var p intake.Point
		switch number {
		case sampleField:
			p, _ = sample(v)
		case histogramField:
			p.Err = ErrHistogram
		default:
			return nil
		}
		if !yield(p) {
			return errEnough
		}
		return nil
	})
}

var errEnough = errors.New("enough")

// label reads a label.
func label(v value) (name, text string, err error) {
	if v.kind != protowire.BytesType {
		return "", "", errBroken
	}
	err = fields(v.bytes, func(number protowire.Number, v value) error {
		switch {
		case number > 2:
			return nil
		case v.kind != protowire.BytesType:
			return errBroken
		case number == 1:
			name = v.text()
		default:
			text = v.text()
		}
		return nil
	})
	return name, text, err
}

// sample reads a sample.
func sample(v value) (p intake.Point, err error) {
	if v.kind != protowire.BytesType {
		return p, errBroken
	}
	p.Value = encoding.FloatValue(0)
	err = fields(v.bytes, func(number protowire.Number, v value) error {
		switch {
		case number == 1 && v.kind == protowire.Fixed64Type:
			p.Value = encoding.FloatValue(math.Float64frombits(v.number))
		case number == 2 && v.kind == protowire.VarintType:
			p.Time = int64(v.number)
		case number <= 2:
			return errBroken
		}
		return nil
	})
	return p, err
}

// value is the value of a field: a number or bytes.
type value struct {
	kind   protowire.Type
	number uint64
	bytes  []byte
}

// text is the bytes, which do not change.
func (v value) text() string { return unsafe.String(unsafe.SliceData(v.bytes), len(v.bytes)) }

// fields calls each with the fields of a message.
func fields(b []byte, each func(protowire.Number, value) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errBroken
		}
		b = b[n:]
		v := value{kind: kind}
		switch kind {
		case protowire.VarintType:
			v.number, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			v.number, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			v.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return errBroken
		}
		b = b[n:]
		if err := each(number, v); err != nil {
			return err
		}
	}
	return nil
}
