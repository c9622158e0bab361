package lookup

import (
	"bytes"
	"context"
	"slices"

	"downpour/encoding"
	"downpour/pushdown/process/memory"
)

// Values returns the values that a tag key has in the series that match, each once and by name:
// at most limit of them, which is positive, and whether there are more. It reads the meta table,
// as far as it must; which ones of more it returns is left open. Errors are those of Find.
func (f *Finder) Values(ctx context.Context, q Query, key string, limit int) (values []string, more bool, err error) {
	keyUID, err := f.cfg.Names.Resolve(ctx, encoding.UIDTagK, key)
	if err != nil {
		return nil, false, err
	}
	if !slices.ContainsFunc(q.Tags, func(t Tag) bool { return t.Key != nil && *t.Key == key }) {
		q.Tags = append(slices.Clone(q.Tags), Tag{Key: &key})
	}
	w, err := f.resolve(ctx, q)
	if err != nil {
		return nil, false, err
	}

	seen := map[string]bool{}
	var uids []encoding.UID
	var pairs []encoding.TagPair
scans:
	for _, s := range f.scans(w, true) {
		for tsuid, err := range f.admitted(ctx, s, w, true) {
			if err != nil {
				return nil, false, err
			}
			_, tags, _ := f.cfg.Schema.SplitTSUID(tsuid) // it was checked when it was read
			pairs = f.cfg.Schema.AppendPairs(pairs[:0], tags)
			at := slices.IndexFunc(pairs, func(p encoding.TagPair) bool { return bytes.Equal(p.K, keyUID) })
			if at < 0 || seen[string(pairs[at].V)] {
				continue
			}
			if more = len(uids) == limit; more {
				break scans
			}
			if err := memory.Reserve(ctx, tagBytes+tsuidBytes); err != nil {
				return nil, false, err
			}
			seen[string(pairs[at].V)] = true
			uids = append(uids, bytes.Clone(pairs[at].V))
		}
	}

	values, err = f.cfg.Names.Names(ctx, encoding.UIDTagV, uids)
	slices.Sort(values)
	return values, more, err
}
