package live

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"downpour/encoding"
	"downpour/pushdown/process/memory"
)

// Kind is the type of a server message, as the protocol spells it.
type Kind string

// Kinds of updates.
const (
	KindSnapshot Kind = "snapshot"
	KindDelta    Kind = "delta"
	KindError    Kind = "error"
	KindComplete Kind = "complete"
)

// Update is one message to a subscriber. Subscribers share updates, so that each
// format is encoded once. All methods may be called from any goroutine.
type Update struct {
	Kind  Kind
	Epoch string
	Seq   uint64
	Err   *Error // of KindError

	millis bool
	merged bool // of several changes: the subscriber was slow

	// Of KindSnapshot.
	groups      []*group
	points      int         // in groups
	missing     [][2]string // key ranges, in hex, that could not be read
	rows        int64       // that the store delivered for the answer; 0 is unknown
	finalBefore int64
	damaged     int64    // rows that were left out, because they cannot be read
	ignored     []string // see Config.Ignored

	delta *delta // of KindDelta

	account *memory.Account // of the messages' memory; nil reserves nothing

	mu      sync.Mutex
	json    []byte // nil until it is requested
	arrow   arrowForm
	encoded atomic.Int64 // bytes of the formats encoded so far

	// Guarded by evaluator.mu: the numbers of the ticks that last counted the
	// update (evaluator.countHeldLocked), and found it in the history.
	counted, inHistory uint64
}

// Ends reports whether this update ends the subscription.
func (u *Update) Ends() bool {
	return u.Kind == KindComplete || u.Kind == KindError && !u.Err.Temporary
}

// JSON returns the part of the message after type and id, with the closing brace:
// `,"epoch":"k3-1-1","seq":1,"results":[…]}`. The bytes are shared and must not be
// changed. The error is ErrNoMemory.
func (u *Update) JSON() ([]byte, error) {
	u.mu.Lock()
	defer u.mu.Unlock()

	if u.json == nil {
		if err := u.reserve(); err != nil {
			return nil, err
		}
		u.json = u.appendJSON(make([]byte, 0, u.textBytes()))
		u.encoded.Add(int64(cap(u.json)))
	}
	return u.json, nil
}

// appendJSON appends what JSON returns.
func (u *Update) appendJSON(b []byte) []byte {
	switch u.Kind {
	case KindSnapshot:
		b = append(u.appendHead(b), `,"results":[`...)
		for i, g := range u.groups {
			b = g.description.appendFields(append(comma(b, i), '{'))
			b = append(g.points.appendDps(append(b, ','), g.nanIsNull), '}')
		}
		b = u.appendSnapshotFields(append(b, ']'))
	case KindDelta:
		b = u.delta.appendFields(u.appendHead(b))
	case KindError:
		b = append(b, `,"error":{"code":`...)
		b = strconv.AppendInt(b, int64(u.Err.Code), 10)
		b = append(appendString(append(b, `,"message":`...), u.Err.Message), `,"temporary":`...)
		b = strconv.AppendBool(b, u.Err.Temporary)
		for i, name := range u.Err.Suggestions {
			if i == 0 {
				b = append(b, `,"suggestions":[`...)
			}
			b = appendString(comma(b, i), name)
		}
		if len(u.Err.Suggestions) > 0 {
			b = append(b, ']')
		}
		b = append(b, '}')
	}
	return append(b, '}')
}

// appendHead writes what snapshots and deltas begin with: the update's place in the history, and what is
// incomplete or damaged in the answer.
func (u *Update) appendHead(b []byte) []byte {
	b = appendString(append(b, `,"epoch":`...), u.Epoch)
	b = strconv.AppendUint(append(b, `,"seq":`...), u.Seq, 10)
	if u.merged {
		b = append(b, `,"merged":true`...)
	}
	if len(u.missing) > 0 {
		text, _ := json.Marshal(u.missing) // strings always encode
		b = append(append(b, `,"missing":`...), text...)
	}
	damaged := u.damaged // of a snapshot
	if u.delta != nil {
		damaged = u.delta.damaged
	}
	if damaged > 0 {
		b = append(strconv.AppendInt(append(b, `,"damaged":{"rows":`...), damaged, 10), '}')
	}
	return b
}

// appendSnapshotFields writes what a snapshot ends with. Unknown fields are omitted.
func (u *Update) appendSnapshotFields(b []byte) []byte {
	if u.rows > 0 {
		b = strconv.AppendInt(append(b, `,"rows":`...), u.rows, 10)
	}
	if u.finalBefore > 0 {
		b = strconv.AppendInt(append(b, `,"finalBefore":`...), u.finalBefore, 10)
	}
	if len(u.ignored) > 0 {
		text, _ := json.Marshal(u.ignored) // strings always encode
		b = append(append(b, `,"ignored":`...), text...)
	}
	return b
}

// appendFields writes the fields of a delta.
func (d *delta) appendFields(b []byte) []byte {
	b = d.appendGroups(b)
	b = append(b, `,"upserts":[`...)
	for i, u := range d.upserts { //fault:last-group-left-out-of-a-delta TestJSONOfUpdates
		b = append(comma(b, i), `{"group":`...)
		b = append(strconv.AppendInt(b, int64(u.group), 10), ',')
		b = append(u.points.appendDps(b, u.nanIsNull), '}')
	}
	b = append(b, `],"deletes":[`...)
	for i, x := range d.deletes {
		b = append(comma(b, i), `{"group":`...)
		b = append(strconv.AppendInt(b, int64(x.group), 10), `,"ts":`...)
		b = append(appendInts(b, x.times), '}')
	}
	return strconv.AppendInt(append(b, `],"finalBefore":`...), d.finalBefore, 10)
}

// appendGroups writes which groups were added, described again or removed.
func (d *delta) appendGroups(b []byte) []byte {
	b = append(b, `,"groups":[`...)
	for i, g := range d.groups {
		b = append(comma(b, i), `{"group":`...)
		b = append(strconv.AppendInt(b, int64(g.group), 10), ',')
		b = append(g.description.appendFields(b), '}')
	}
	b = append(b, `],"removed":[`...)
	for i, n := range d.removed {
		b = strconv.AppendInt(comma(b, i), int64(n), 10)
	}
	return append(b, ']')
}

// appendFields writes the fields of a description.
func (d *description) appendFields(b []byte) []byte {
	b = strconv.AppendInt(append(b, `"queryIndex":`...), int64(d.queryIndex), 10)
	b = appendString(append(b, `,"metric":`...), d.metric)
	b = append(b, `,"tags":{`...)
	for i, k := range slices.Sorted(maps.Keys(d.tags)) {
		b = append(appendString(comma(b, i), k), ':')
		b = appendString(b, d.tags[k])
	}
	b = append(b, `},"aggregateTags":[`...)
	for i, k := range d.aggregateTags {
		b = appendString(comma(b, i), k)
	}
	return append(b, ']')
}

// appendDps writes the field dps: points as [time, value] pairs.
func (c points) appendDps(b []byte, nanIsNull bool) []byte {
	b = append(b, `"dps":[`...)
	for i, t := range c.time {
		b = strconv.AppendInt(append(comma(b, i), '['), t, 10)
		b = append(AppendValue(append(b, ','), c.value(i), nanIsNull), ']')
	}
	return append(b, ']')
}

// AppendValue appends a value as JSON. An integer has no point, and a float has a point
// or an exponent, so that 1 and 1.0 differ. JSON has no number for NaN and the
// infinities: they are the strings "NaN", "Infinity" and "-Infinity", and NaN is null
// if nanIsNull is set.
func AppendValue(b []byte, v encoding.Value, nanIsNull bool) []byte {
	if !v.Float {
		return strconv.AppendInt(b, v.Int(), 10)
	}
	f := v.Double()
	switch {
	case math.IsNaN(f) && nanIsNull:
		return append(b, "null"...)
	case math.IsNaN(f):
		return append(b, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(b, `"-Infinity"`...)
	}
	return appendFinite(b, f)
}

// appendFinite appends a finite float with a point or an exponent.
func appendFinite(b []byte, f float64) []byte {
	if a := math.Abs(f); a != 0 && (a < 1e-3 || a >= 1e15) {
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	from := len(b)
	b = strconv.AppendFloat(b, f, 'f', -1, 64)
	if !slices.Contains(b[from:], '.') {
		b = append(b, ".0"...)
	}
	return b
}

// appendInts appends a JSON array.
func appendInts(b []byte, values []int64) []byte {
	b = append(b, '[')
	for i, v := range values {
		b = strconv.AppendInt(comma(b, i), v, 10)
	}
	return append(b, ']')
}

// appendString appends a JSON string.
func appendString(b []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // a string always encodes
	return append(b, quoted...)
}

// comma appends a comma before each element but the first.
func comma(b []byte, i int) []byte {
	if i > 0 {
		return append(b, ',')
	}
	return b
}
