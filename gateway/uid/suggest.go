package uid

import (
	"context"
	"fmt"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Entry is a name and its UID.
type Entry struct {
	Name string
	UID  encoding.UID
}

// Suggest returns up to max names of a kind that begin with prefix, in byte
// order. Source: UniqueId.suggest.
func (d *Dictionary) Suggest(ctx context.Context, kind encoding.UIDKind, prefix string, max int) ([]string, error) {
	entries, _, err := d.Enumerate(ctx, kind, prefix, max)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
	}
	return names, err
}

// Enumerate returns up to limit names of a kind that begin with prefix, with
// their UIDs, in byte order; complete tells that there are no more.
func (d *Dictionary) Enumerate(ctx context.Context, kind encoding.UIDKind, prefix string, limit int) (out []Entry, complete bool, err error) {
	scan, ok := d.prefixScan(prefix, kind)
	if !ok {
		return nil, true, nil
	}
	for r, err := range store.Rows(ctx, d.cfg.Store, scan) {
		if err != nil {
			return nil, false, fmt.Errorf("uid: %s beginning with %q: %w", kind, prefix, err)
		}
		u := column(r, kind)
		if len(u) != d.cfg.Schema.UIDWidth(kind) {
			continue // a name of another kind, or the counter
		}
		if len(out) == limit {
			return out, false, nil
		}
		out = append(out, Entry{encoding.ParseName(r.Key), u})
	}
	return out, true, nil
}

// Rows of names begin here, behind the counter's row 00.
const firstName = '!'

// prefixScan scans the names of a kind that begin with prefix; not ok when no
// name can.
func (d *Dictionary) prefixScan(prefix string, kind encoding.UIDKind) (store.Scan, bool) {
	scan := store.Scan{Table: d.cfg.Table, Family: encoding.FamilyID,
		Columns: []store.KeyRange{{Start: kind.Qualifier(), Stop: append(kind.Qualifier(), 0)}}, BlockBytes: 64 << 10}
	if prefix == "" {
		// Names that begin with a letter beyond '~' are names too.
		scan.Start = []byte{firstName}
		return scan, true
	}
	start, err := encoding.AppendName(nil, prefix)
	if err != nil {
		return scan, false
	}
	scan.Start, scan.Stop = start, encoding.Behind(start)
	return scan, true
}
