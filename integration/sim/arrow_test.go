package sim

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"

	"downpour/encoding/batch"
)

// checkArrow is checkPoints of an answer as an Arrow stream.
func checkArrow(c *clients, gateway int, metric string) error {
	before := c.w.model.snapshot()
	sub := "none:" + metric
	a := c.get(gateway, sub, "Accept", batch.StreamMediaType)
	none, err := c.unanswered(gateway, sub, a)
	if err != nil {
		return err
	}
	got := map[point]int64{}
	if !none {
		if err := readArrow(a.body, metric, got); err != nil {
			c.wrong(gateway, "%s as Arrow, %d bytes: %v", sub, len(a.body), err)
		}
	}
	c.judge(gateway, metric, got, before, c.w.model.snapshot())
	return nil
}

// endOfStream ends a stream in Arrow's format. The reader takes a stream without it as well, but
// then batches may be missing.
var endOfStream = []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}

// openArrow opens a stream that has its end.
func openArrow(stream []byte) (*ipc.Reader, error) {
	if !bytes.HasSuffix(stream, endOfStream) {
		return nil, errors.New("the stream has no end")
	}
	return ipc.NewReader(bytes.NewReader(stream))
}

// arrowRows returns the rows of a stream as text, a line each: where batches begin and end does not matter.
func arrowRows(stream []byte) (rows []byte, err error) {
	r, err := openArrow(stream)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	rows = fmt.Appendf(nil, "%v\n", r.Schema().Fields())
	for r.Next() {
		record := r.Record()
		for row := range int(record.NumRows()) {
			for _, column := range record.Columns() {
				rows = fmt.Appendf(rows, "%s ", column.ValueStr(row))
			}
			rows = append(rows, '\n')
		}
	}
	return rows, r.Err()
}

// readArrow adds the points of a stream.
func readArrow(stream []byte, metric string, to map[point]int64) error {
	r, err := openArrow(stream)
	if err != nil {
		return err
	}
	defer r.Release()
	for r.Next() {
		record := r.Record()
		column := func(name string) arrow.Array { return record.Column(record.Schema().FieldIndices(name)[0]) }
		hosts, values, times := column("host"), column("value").(*array.Float64), column("timestamp").(*array.Timestamp)
		unit := times.DataType().(*arrow.TimestampType).Unit
		for i := range int(record.NumRows()) {
			p := point{metric, hosts.ValueStr(i), times.Value(i).ToTime(unit).Unix()}
			if _, twice := to[p]; twice {
				return fmt.Errorf("%v is there twice", p)
			}
			to[p] = int64(values.Value(i))
		}
	}
	return r.Err()
}
