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

// ErrTooLong tells that a list of names takes more than MaxListed.
var ErrTooLong = fmt.Errorf("uid: the names take more than %d MiB: ask for fewer", MaxListed>>20)

// Suggest returns up to max names of a kind that begin with prefix, in byte
// order. ErrTooLong if these are too long together. Source: UniqueId.suggest.
func (d *Dictionary) Suggest(ctx context.Context, kind encoding.UIDKind, prefix string, max int) ([]string, error) {
	entries, complete, err := d.Enumerate(ctx, kind, prefix, max)
	if err == nil && !complete && len(entries) < max {
		err = ErrTooLong
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
	}
	return names, err
}

// Enumerate returns up to limit names of a kind that begin with prefix, and no
// more of them than MaxListed, with their UIDs, in byte order; complete tells
// that there are no others.
func (d *Dictionary) Enumerate(ctx context.Context, kind encoding.UIDKind, prefix string, limit int) (out []Entry, complete bool, err error) {
	complete, bytes := true, 0
	for e, err := range d.Each(ctx, kind, prefix) {
		if err != nil {
			return nil, false, err
		}
		if bytes += e.bytes(); len(out) == limit || bytes > MaxListed {
			complete = false
			break
		}
		if err := memory.Reserve(ctx, int64(2*e.bytes())); err != nil { // in the list and in the answer
			return nil, false, err
		}
		out = append(out, e)
	}
	return out, complete, nil
}

// bytes is the memory that an entry takes in a list, about.
func (e *Entry) bytes() int { return 64 + len(e.Name) + len(e.UID) }

// Each passes the names of a kind that begin with prefix, in byte order. An error
// comes last, and tells that there may be more.
func (d *Dictionary) Each(ctx context.Context, kind encoding.UIDKind, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		scan, ok := d.prefixScan(prefix, kind)
		if !ok {
			return
		}
		for r, err := range store.Rows(ctx, d.cfg.Store, scan) {
			if err != nil {
				yield(Entry{}, fmt.Errorf("uid: %s beginning with %.100q: %w", kind, prefix, err))
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
	scan.Start, scan.Stop = start, encoding.PrefixEnd(start)
	return scan, true
}
