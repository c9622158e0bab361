package lease

import (
	"context"
	"fmt"
)

// Status is the state of a lease when Statuses read it.
type Status struct {
	// Held is set if the lease has a holder, and Expired if the holder has not renewed it for so long
	// that Try would take it.
	Held, Expired bool
	Holder        string
	// State is what the last holder has saved, nil if none has.
	State []byte
}

// Statuses reads many leases in one call, and takes none. Like Try it notes since when the leases of others are
// unchanged, so that a holder's death is noticed in time for any number of leases. The results are in the
// order of the names; a cell that cannot be read counts as a lease without a holder, and Try returns the
// error.
func (k *Keeper) Statuses(ctx context.Context, names []string) ([]Status, error) {
	if err := k.check(); err != nil {
		return nil, err
	}
	keys := make([][]byte, len(names))
	for i, name := range names {
		keys[i] = cell(name).Row
	}
	rows, err := k.Store.Get(ctx, k.Table, Family, keys)
	if err != nil {
		return nil, fmt.Errorf("cannot read %d leases in table %s: %w", len(names), k.Table, err)
	}
	read := make(map[string]record, len(rows))
	for _, row := range rows {
		if r, err := recordOf(row); err == nil {
			read[string(row.Key)] = r
		}
	}

	out := make([]Status, len(names))
	for i, name := range names {
		r := read[string(keys[i])]
		out[i] = Status{Held: !r.free(), Holder: r.Holder, State: r.state}
		out[i].Expired = out[i].Held && k.isExpired(name, r)
	}
	return out, nil
}
