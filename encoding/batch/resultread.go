package batch

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
)

// ErrCut is that a stream has no end mark: what was read may not be all.
var ErrCut = errors.New("batch: results: the stream is cut")

// ReadResults reads a stream that a ResultWriter has written, to its end. each
// gets the times in ms and the values of a batch, valid until it returns; a null
// value is whatever it happens to be.
func ReadResults(r io.Reader, each func(times []int64, values []float64) error) error {
	end := &lastBytes{r: r}
	in, err := ipc.NewReader(end)
	if err != nil {
		return fmt.Errorf("batch: results: %w", err)
	}
	defer in.Release()
	for in.Next() {
		times, values, err := numbersOf(in.Record())
		if err != nil {
			return err
		}
		if err := each(times, values); err != nil {
			return err
		}
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("batch: results: %w", err)
	}
	if !bytes.Equal(end.last, endMark) {
		return ErrCut
	}
	return nil
}

func numbersOf(rec arrow.Record) ([]int64, []float64, error) {
	var times *array.Timestamp
	var values *array.Float64
	for i, f := range rec.Schema().Fields() {
		switch c := rec.Column(i).(type) {
		case *array.Timestamp:
			times = c
		case *array.Float64:
			if f.Name == "value" {
				values = c
			}
		}
	}
	if times == nil || values == nil {
		return nil, nil, fmt.Errorf("batch: results: got the columns %v, want timestamp and value", rec.Schema().Fields())
	}
	return arrow.Int64Traits.CastFromBytes(arrow.TimestampTraits.CastToBytes(times.TimestampValues())), values.Float64Values(), nil
}

// lastBytes remembers the last bytes read, as many as an end mark has.
type lastBytes struct {
	r    io.Reader
	last []byte
}

// Read reads and remembers.
func (l *lastBytes) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	l.last = append(l.last, p[max(0, n-len(endMark)):n]...)
	l.last = l.last[max(0, len(l.last)-len(endMark)):]
	return n, err
}
