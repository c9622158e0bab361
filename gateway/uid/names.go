package uid

import (
	"context"
	"fmt"
	"slices"

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

// Names returns the names of UIDs, in their order, or a *NoSuchIDError for one that
// has none.
func (d *Dictionary) Names(ctx context.Context, kind encoding.UIDKind, uids []encoding.UID) ([]string, error) {
	generation := d.Generation()
	names := make([]string, len(uids))
	missing := map[string][]int{} // by the bytes of a UID without a name so far, its indexes in names
	for i, u := range uids {
		// If all names are cached, no read notices the end of ctx.
		if i%namesPerRead == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if name, ok := d.reverse.GetIfPresent(nameKey{kind, string(u)}); ok {
			names[i] = name
		} else {
			missing[string(u)] = append(missing[string(u)], i)
		}
	}

	var uncached [][]byte
	for u := range missing {
		uncached = append(uncached, []byte(u))
	}
	for part := range slices.Chunk(uncached, namesPerRead) {
		read, err := d.readNames(ctx, kind, part)
		if err != nil {
			return nil, err
		}
		d.cacheNamesIfCurrent(generation, kind, read)
		for u, name := range read {
			for _, i := range missing[u] {
				names[i] = name
			}
			delete(missing, u)
		}
	}

	// UIDs that are still missing have no names.
	for u := range missing {
		return nil, &NoSuchIDError{kind, encoding.UID(u)}
	}
	return names, nil
}

// readNames reads the reverse mappings of UIDs: names by the bytes of their UIDs. UIDs without one are left
// out.
func (d *Dictionary) readNames(ctx context.Context, kind encoding.UIDKind, uids [][]byte) (map[string]string, error) {
	rows, err := d.cfg.Store.Get(ctx, d.cfg.Table, encoding.FamilyName, uids)
	if err != nil {
		return nil, fmt.Errorf("uid: cannot read the names of %d %s: %w", len(uids), kind, err)
	}

	names := make(map[string]string, len(rows))
	for _, r := range rows {
		if value := column(r, kind); value != nil {
			names[string(r.Key)] = encoding.ParseName(value)
		}
	}
	return names, nil
}
