package live

import (
	"bytes"
	"math"
	"strconv"
	"sync"

	"downpour/encoding/batch"
)

// arrowForm is an update as JSON header and binary message, made once.
type arrowForm struct {
	once   sync.Once
	header []byte
	frame  []byte
	err    error
}

// Arrow returns the binary form of a snapshot or delta: what stands in the JSON
// header after type and id, and the Arrow IPC stream that follows it as a binary
// message. The header says which groups there are, as the JSON form does, but
// without points; the stream holds those (batch.LiveRows). Subscriptions that
// take this form must ask for Millis. The bytes are shared: not to be changed.
func (u *Update) Arrow() (header, frame []byte, err error) {
	u.arrow.once.Do(u.makeArrow)
	return u.arrow.header, u.arrow.frame, u.arrow.err
}

func (u *Update) makeArrow() {
	h := append(u.appendPlace(nil), `,"binary":true`...)
	var rows batch.LiveRows
	if u.Kind == KindSnapshot {
		h = append(h, `,"results":[`...)
		for i, g := range u.groups {
			h = append(g.describe.append(append(comma(h, i), '{')), '}')
			g.cells.appendRows(&rows, i, g.nanIsNull)
		}
		h = u.appendAbout(append(h, ']'))
	} else {
		h = u.delta.appendShape(h)
		h = strconv.AppendInt(append(h, `,"finalBefore":`...), u.delta.finalBefore, 10)
		u.delta.appendRows(&rows)
	}
	u.arrow.header = append(h, '}')
	var out bytes.Buffer
	u.arrow.err = batch.WriteLive(&out, &rows)
	u.arrow.frame = out.Bytes()
	u.encoded.Add(int64(cap(u.arrow.header) + out.Cap()))
}

func (d *delta) appendRows(rows *batch.LiveRows) {
	for _, u := range d.upserts {
		u.cells.appendRows(rows, u.group, u.nanIsNull)
	}
	for _, x := range d.deletes {
		for _, t := range x.times {
			rows.AppendDelete(x.group, t)
		}
	}
}

func (c cells) appendRows(rows *batch.LiveRows, group int, nanIsNull bool) {
	for i, t := range c.time {
		if v := c.value(i).Double(); nanIsNull && math.IsNaN(v) {
			rows.AppendNull(group, t)
		} else {
			rows.Append(group, t, v)
		}
	}
}
