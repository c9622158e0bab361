package lease

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// maxState bounds the bytes of a state: each heartbeat writes it again.
const maxState = 1 << 20

// record is the cell of a lease.
type record struct {
	Holder string `json:"holder"` // empty if it was released
	Turn   string `json:"turn"`   // of the last holder
	Beat   int64  `json:"beat"`   // counts the writes of the turn
	state  []byte // what the last holder has saved, nil if none has
	value  []byte // the bytes of the cell, nil if there is none
}

// free reports whether the lease has no holder.
func (r *record) free() bool { return r.Holder == "" }

// encoded returns a record with its bytes.
func (r record) encoded() (record, error) {
	head, err := json.Marshal(r)
	if err != nil {
		return r, err
	}
	r.value = append(append(head, '\n'), r.state...)
	return r, nil
}

// parseRecord reads a cell.
func parseRecord(value []byte) (record, error) {
	r := record{value: bytes.Clone(value)}
	head, state, ok := bytes.Cut(r.value, []byte("\n"))
	if !ok {
		return r, fmt.Errorf("got %.100q, want a line of JSON", value)
	}
	if err := json.Unmarshal(head, &r); err != nil {
		return r, fmt.Errorf("got %.100q: %w", head, err)
	}
	if r.Turn == "" {
		return r, fmt.Errorf("got %.100q, want a turn", head)
	}
	if len(state) > 0 {
		r.state = state
	}
	return r, nil
}
