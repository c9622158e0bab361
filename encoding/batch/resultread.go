package batch

import (
	"bytes"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
)

// ReadResults reads a stream written by a ResultWriter to its end. For each batch it
// calls each with the times in ms and the values, which are valid until each returns;
// the value in place of a null is undefined. It returns ErrCut, an error of each, or an
// error of the stream.
func ReadResults(r io.Reader, each func(times []int64, values []float64) error) error {
	in, err := newRecords(r)
	if err != nil {
		return err
	}
	return in.readAll(func(rec arrow.Record) error {
		times, values, err := numbersOf(rec)
		if err != nil {
			return err
		}
		return each(times, values)
	})
}

// records are the record batches of a stream.
type records struct {
	*ipc.Reader
	end *lastBytes
}

// newRecords reads the beginning of a stream.
func newRecords(r io.Reader) (*records, error) {
	end := &lastBytes{r: r}
	in, err := ipc.NewReader(end)
	if err != nil {
		return nil, fmt.Errorf("batch: cannot read results: %w", err)
	}
	return &records{Reader: in, end: end}, nil
}

// readAll calls each with every record batch, which is valid until each returns, and wants the end mark: Arrow's reader
// accepts the end of the input as the end of the stream.
func (r *records) readAll(each func(arrow.Record) error) error {
	for r.Next() {
		if err := each(r.Record()); err != nil {
			return err
		}
	}
	if err := r.Err(); err != nil {
		return fmt.Errorf("batch: cannot read results: %w", err)
	}
	if !bytes.Equal(r.end.last, endMark) {
		return ErrCut
	}
	return nil
}

// numbersOf returns the columns timestamp and value of a record, found by type and
// name: their places depend on the number of tag keys.
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
		return nil, nil, fmt.Errorf("batch: cannot read results: got the columns %v, want timestamp and value",
			rec.Schema().Fields())
	}
	return arrow.Int64Traits.CastFromBytes(arrow.TimestampTraits.CastToBytes(times.TimestampValues())),
		values.Float64Values(), nil
}

// lastBytes is a reader that keeps the last bytes read, as many as an end mark has.
type lastBytes struct {
	r    io.Reader
	last []byte
}

// Read reads from r.
func (l *lastBytes) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	l.last = append(l.last, p[max(0, n-len(endMark)):n]...)
	l.last = l.last[max(0, len(l.last)-len(endMark)):]
	return n, err
}
