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
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"mime"

	"google.golang.org/protobuf/encoding/protowire"

	"downpour/encoding"
	"downpour/gateway/extra/prometheus/intake"
	"downpour/gateway/extra/prometheus/message"
)

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

// span is where a series is in the body. Its labels are its first bytes, up to points, and nowhere else; or they are
// among its points, as no sender writes them, and points is from.
type span struct{ from, points, to uint32 }

// spanBytes is the memory of a span in a list that has grown.
const spanBytes = 3 * 12

// ErrHistogram refuses native histograms.
var ErrHistogram = errors.New("native histograms are not supported: OpenTSDB's tables hold numbers; send classic ones")

var errUnreadable = errors.New("cannot read the request: a message is cut off or broken")

// Parse checks that a body, unpacked, is a request, and returns it; the body must not change. It calls reserve before
// it takes memory, and returns its error.
func Parse(body []byte, reserve func(bytes int64) error) (*Request, error) {
	r := &Request{body: body}
	if len(body) > intake.MaxBody { // positions are 32 bits
		return nil, fmt.Errorf("the request has %d bytes, at most %d", len(body), intake.MaxBody)
	}
	reserved := 0
	for rest := body; len(rest) > 0; {
		number, v, after, ok := message.Next(rest)
		if !ok {
			return nil, errUnreadable
		}
		rest = after
		if number != seriesField {
			continue
		}
		points, labels, ok := check(v)
		if !ok {
			return nil, errUnreadable
		}
		if points == 0 {
			continue
		}
		if len(r.series) == reserved {
			more := max(1024, reserved)
			if err := reserve(int64(more) * spanBytes); err != nil {
				return nil, err
			}
			reserved += more
		}
		to := len(body) - len(rest)
		from := to - len(v.Bytes)
		r.series = append(r.series, span{uint32(from), uint32(from + labels), uint32(to)})
		r.points += points
	}
	return r, nil
}

// check checks a series and returns how many points it has, and the bytes of the labels that it begins with, 0 if
// others come later.
func check(series message.Value) (points, labels int, ok bool) {
	if series.Kind != protowire.BytesType {
		return 0, 0, false
	}
	began := false // what is not a label
	for rest := series.Bytes; len(rest) > 0; {
		var number protowire.Number
		var v message.Value
		if number, v, rest, ok = message.Next(rest); !ok {
			return 0, 0, false
		}
		switch number {
		case labelField: // read by Key: most series are known by their spelling
			ok = v.Kind == protowire.BytesType
		case sampleField:
			points++
			_, ok = sample(v)
		case histogramField:
			points++
		}
		switch {
		case !ok:
			return 0, 0, false
		case number != labelField:
			began = true
		case began:
			labels = -1
		case labels >= 0:
			labels = len(series.Bytes) - len(rest)
		}
	}
	return points, max(0, labels), true
}

// Series is how many series have points.
func (r *Request) Series() int { return len(r.series) }

// Points is how many points there are.
func (r *Request) Points() int { return r.points }

func (r *Request) of(i int) []byte { return r.body[r.series[i].from:r.series[i].to] }

// Spelling is the labels of series i as they are in the message, nil if they are not together.
func (r *Request) Spelling(i int) []byte { return r.body[r.series[i].from:r.series[i].points] }

const nameLabel = "__name__"

// Key sets k to the names of series i. Of a label that is broken, nothing of the series is taken.
func (r *Request) Key(i int, k *intake.Key) error {
	if err := k.Reset(metricOf(r.of(i))); err != nil {
		return err
	}
	named := false
	for rest := r.of(i); len(rest) > 0; {
		var number protowire.Number
		var v message.Value
		if number, v, rest, _ = message.Next(rest); number != labelField {
			continue
		}
		name, text, ok := label(v)
		switch {
		case !ok:
			return errBrokenLabel
		case name == nameLabel && named:
			return errTwoNames
		case name == nameLabel:
			named = true
			continue
		case k.Tags() == maxLabels:
			return fmt.Errorf("more than %d labels", maxLabels)
		}
		if err := k.Add(name, text); err != nil {
			return err
		}
	}
	return nil
}

// metricOf returns the metric of a series; "" if it has none.
func metricOf(series []byte) string {
	for rest := series; len(rest) > 0; {
		var number protowire.Number
		var v message.Value
		if number, v, rest, _ = message.Next(rest); number != labelField {
			continue
		}
		if name, text, _ := label(v); name == nameLabel { // most often the first
			return text
		}
	}
	return ""
}

// maxLabels is the most labels that are looked at: a row key has at most as many tags.
const maxLabels = 255

var errBrokenLabel = errors.New("cannot read a label: its message is cut off or broken")

var errTwoNames = fmt.Errorf("the label %s is there twice", nameLabel)

// Each calls yield with the points of series i.
func (r *Request) Each(i int, yield func(intake.Point) bool) {
	for rest := r.body[r.series[i].points:r.series[i].to]; len(rest) > 0; {
		var number protowire.Number
		var v message.Value
		number, v, rest, _ = message.Next(rest) // checked before, as all below
		var p intake.Point
		switch number {
		case sampleField:
			p, _ = sample(v)
		case histogramField:
			p.Err = ErrHistogram
		default:
			continue
		}
		if !yield(p) {
			return
		}
	}
}

// label reads a label.
func label(v message.Value) (name, text string, ok bool) {
	if v.Kind != protowire.BytesType {
		return "", "", false
	}
	for rest := v.Bytes; len(rest) > 0; {
		var number protowire.Number
		var v message.Value
		if number, v, rest, ok = message.Next(rest); !ok {
			return "", "", false
		}
		switch {
		case number > 2:
		case v.Kind != protowire.BytesType:
			return "", "", false
		case number == 1:
			name = v.Text()
		default:
			text = v.Text()
		}
	}
	return name, text, true
}

// sample reads a sample.
func sample(v message.Value) (p intake.Point, ok bool) {
	if v.Kind != protowire.BytesType {
		return p, false
	}
	// As senders write it: the value, then the time.
	if b := v.Bytes; len(b) > 10 && b[0] == 1<<3|byte(protowire.Fixed64Type) &&
		b[9] == 2<<3|byte(protowire.VarintType) {
		if at, n := binary.Uvarint(b[10:]); n == len(b)-10 {
			p.Value = encoding.FloatValue(math.Float64frombits(binary.LittleEndian.Uint64(b[1:])))
			p.Time = int64(at)
			return p, true
		}
	}
	p.Value = encoding.FloatValue(0)
	for rest := v.Bytes; len(rest) > 0; {
		var number protowire.Number
		var v message.Value
		if number, v, rest, ok = message.Next(rest); !ok {
			return p, false
		}
		switch {
		case number == 1 && v.Kind == protowire.Fixed64Type:
			p.Value = encoding.FloatValue(math.Float64frombits(v.Number))
		case number == 2 && v.Kind == protowire.VarintType:
			p.Time = int64(v.Number)
		case number <= 2:
			return p, false
		}
	}
	return p, true
}
