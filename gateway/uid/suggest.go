package uid

import (
	"context"
	"fmt"
	"iter"

	"downpour/encoding"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// Entry is a name and its UID.
type Entry struct {
	Name string
	UID  encoding.UID
}

// MaxListed bounds the memory of a list of names, in bytes.
const MaxListed = 64 << 20

// Suggest returns up to max names of a kind that begin with prefix, in byte order.
// The error is ErrTooLong if these take more memory than MaxListed.
// Source: UniqueId.suggest.
func (d *Dictionary) Suggest(ctx context.Context, kind encoding.UIDKind, prefix string, max int) ([]string, error) {
	entries, complete, err := d.Enumerate(ctx, kind, prefix, max)
	if err == nil && !complete && len(entries) < max { // cut by MaxListed, not by max
		err = ErrTooLong
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
	}
	return names, err
}

// Enumerate returns up to limit names of a kind that begin with prefix, and their
// UIDs, in byte order. It ends early at MaxListed bytes. complete is true if out has all
// names with the prefix.
func (d *Dictionary) Enumerate(ctx context.Context, kind encoding.UIDKind, prefix string,
	limit int) (out []Entry, complete bool, err error) {
	complete, bytes := true, 0
	for e, err := range d.Each(ctx, kind, prefix) {
		if err != nil {
			return nil, false, err
		}
		// The one name beyond the limit shows that there are others.
		if bytes += e.bytes(); len(out) == limit || bytes > MaxListed {
			complete = false
			break
		}
		// An entry is held twice: in the list, and in the answer that is made of it.
		if err := memory.Reserve(ctx, int64(2*e.bytes())); err != nil {
			return nil, false, err
		}
		out = append(out, e)
	}
	return out, complete, nil
}

// bytes returns the memory of an entry in a list, approximately.
func (e *Entry) bytes() int { return 64 + len(e.Name) + len(e.UID) }

// Each returns an iterator over the names of a kind that begin with prefix, in byte
// order. An error comes last and means that there may be more names.
func (d *Dictionary) Each(ctx context.Context, kind encoding.UIDKind, prefix string) iter.Seq2[Entry, error] {
	return d.EachAfter(ctx, kind, prefix, "")
}

// EachAfter is Each of the names behind one, which need not exist; "" is before all.
func (d *Dictionary) EachAfter(ctx context.Context, kind encoding.UIDKind,
	prefix, after string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		scan, ok := d.prefixScan(prefix, kind)
		if !ok {
			return
		}
		if row, err := encoding.AppendName(nil, after); err == nil && after != "" {
			scan.Start = append(row, 0) // the next key
		}

		for r, err := range store.Rows(ctx, d.cfg.Store, scan) {
			if err != nil {
				yield(Entry{}, fmt.Errorf("uid: cannot scan %s beginning with %.100q: %w", kind, prefix, err))
				return
			}
			u := column(r, kind)
			if len(u) != d.cfg.Schema.UIDWidth(kind) {
				continue // a name of another kind, or the counter
			}
			if !yield(Entry{encoding.ParseName(r.Key), u}, nil) {
				return
			}
		}
	}
}

// firstName is where the rows of names begin, after the counter's row 00.
const firstName = '!'

// prefixScan returns a scan of the names of a kind that begin with prefix; ok is
// false if no name can begin so.
func (d *Dictionary) prefixScan(prefix string, kind encoding.UIDKind) (scan store.Scan, ok bool) {
	scan = store.Scan{Table: d.cfg.Table, Family: encoding.FamilyID,
		Columns: []store.KeyRange{{Start: kind.Qualifier(), Stop: append(kind.Qualifier(), 0)}}, BlockBytes: 64 << 10}
	if prefix == "" {
		// No stop key: names can also begin with a byte above '~'.
		scan.Start = []byte{firstName}
		return scan, true
	}
	start, err := encoding.AppendName(nil, prefix)
	if err != nil {
		return scan, false // a character that no name can have
	}
	scan.Start, scan.Stop = start, encoding.PrefixEnd(start)
	return scan, true
}
