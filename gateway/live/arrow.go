package live

import (
	"bytes"
	"math"
	"strconv"

	"downpour/encoding/batch"
)

// arrowForm is an update as a JSON header and a binary message.
type arrowForm struct {
	header []byte // nil until it is requested
	frame  []byte
}

// Arrow returns the binary form of a snapshot or delta: the part of the JSON header
// after type and id, and the Arrow IPC stream that follows the header as a binary
// message. The header describes the groups, as the JSON form does, but has no points;
// these are in the stream (batch.LiveRows). Subscriptions to this form must set
// Request.Millis.
//
// The bytes are shared and must not be changed. The error is ErrNoMemory, or the reason why the
// stream cannot be written.
func (u *Update) Arrow() (header, frame []byte, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()

	if u.arrow.header == nil {
		if err := u.reserve(); err != nil {
			return nil, nil, err
		}
		// While it is encoded, its rows and the columns made of them are held too.
		scratch := 2 * u.messageBytes()
		if !u.account.Try(scratch) {
			return nil, nil, ErrNoMemory
		}
		defer u.account.Release(scratch)
		if err := u.makeArrow(); err != nil {
			return nil, nil, err
		}
	}
	return u.arrow.header, u.arrow.frame, nil
}

// makeArrow sets u.arrow to the encoded update. REQUIRES: u.mu is held.
func (u *Update) makeArrow() error {
	h := append(u.appendHead(nil), `,"binary":true`...)
	var rows batch.LiveRows

	if u.Kind == KindSnapshot {
		h = append(h, `,"results":[`...)
		for i, g := range u.groups {
			h = append(g.description.appendFields(append(comma(h, i), '{')), '}')
			g.points.appendRows(&rows, i, g.nanIsNull)
		}
		h = u.appendSnapshotFields(append(h, ']'))
	} else {
		h = u.delta.appendGroups(h)
		h = strconv.AppendInt(append(h, `,"finalBefore":`...), u.delta.finalBefore, 10)
		u.delta.appendRows(&rows)
	}

	var out bytes.Buffer
	if err := batch.WriteLive(&out, &rows); err != nil {
		return err
	}

	u.arrow = arrowForm{header: append(h, '}'), frame: out.Bytes()}
	u.encoded.Add(int64(cap(u.arrow.header) + out.Cap()))
	return nil
}

// appendRows appends the points that the delta sets, then those that it deletes.
func (d *delta) appendRows(rows *batch.LiveRows) {
	for _, u := range d.upserts {
		u.points.appendRows(rows, u.group, u.nanIsNull)
	}
	for _, x := range d.deletes {
		for _, t := range x.times {
			rows.AppendDelete(x.group, t)
		}
	}
}

// appendRows appends the points of a group, NaN as null if nanIsNull is set.
func (c points) appendRows(rows *batch.LiveRows, group int, nanIsNull bool) {
	for i, t := range c.time {
		if v := c.value(i).Double(); nanIsNull && math.IsNaN(v) {
			rows.AppendNull(group, t)
		} else {
			rows.Append(group, t, v)
		}
	}
}
