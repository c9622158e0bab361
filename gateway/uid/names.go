package uid

import (
	"context"
	"fmt"

	"downpour/encoding"
)

// Name returns the name of a UID, or a *NoSuchIDError.
func (d *Dictionary) Name(ctx context.Context, kind encoding.UIDKind, u encoding.UID) (string, error) {
	names, err := d.Names(ctx, kind, []encoding.UID{u})
	if err != nil {
		return "", err
	}
	return names[0], nil
}

// namesPerRead bounds one read of the UID table.
const namesPerRead = 1000

// Names returns the names of UIDs, in their order, or a *NoSuchIDError for the
// first that has none.
func (d *Dictionary) Names(ctx context.Context, kind encoding.UIDKind, uids []encoding.UID) ([]string, error) {
	names := make([]string, len(uids))
	missing := map[string][]int{}
	for i, u := range uids {
		if name, ok := d.reverse[kind].GetIfPresent(string(u)); ok {
			names[i] = name
		} else {
			missing[string(u)] = append(missing[string(u)], i)
		}
	}
	var keys [][]byte
	for u := range missing {
		keys = append(keys, []byte(u))
	}
	for len(keys) > 0 {
		n := min(len(keys), namesPerRead)
		if err := d.readNames(ctx, kind, keys[:n], missing, names); err != nil {
			return nil, err
		}
		keys = keys[n:]
	}
	for u := range missing {
		return nil, &NoSuchIDError{kind, encoding.UID(u)}
	}
	return names, nil
}

// readNames reads the reverse mappings of keys, fills in their places and takes
// them off missing.
func (d *Dictionary) readNames(ctx context.Context, kind encoding.UIDKind, keys [][]byte, missing map[string][]int, names []string) error {
	rows, err := d.cfg.Store.Get(ctx, d.cfg.Table, encoding.FamilyName, keys)
	if err != nil {
		return fmt.Errorf("uid: names of %d %s: %w", len(keys), kind, err)
	}
	for _, r := range rows {
		value := column(r, kind)
		if value == nil {
			continue
		}
		name := encoding.ParseName(value)
		d.reverse[kind].Set(string(r.Key), name)
		for _, i := range missing[string(r.Key)] {
			names[i] = name
		}
		delete(missing, string(r.Key))
	}
	return nil
}
