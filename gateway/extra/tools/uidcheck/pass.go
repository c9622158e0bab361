package uidcheck

import (
	"bytes"
	"context"
	"fmt"

	"downpour/encoding"
	"downpour/gateway/metadata/wholetable"
	"downpour/pushdown/store"
)

// key is a UID or a name of a kind.
type key struct {
	kind encoding.UIDKind
	text string
}

// pass reads the table once, for those UIDs that fall into its part.
type pass struct {
	*check
	share  wholetable.Share
	budget wholetable.Budget // of the memory of what follows, about

	// claims are UIDs to which names lead that they do not lead back to. The owner to
	// which a UID leads back may be missing among the names until it is looked at again.
	claims map[key]*claim
	// strays are UIDs without a claim, by the name that they lead to.
	strays map[key]*stray
	// findings are those that need no second look.
	findings []Finding
	ids      [3]counted
}

// counted counts the mappings of a kind.
type counted struct {
	forward, reverse int64
	largest          uint64
}

// mapping is one mapping that was read.
type mapping struct {
	kind      encoding.UIDKind
	name, uid string
}

func newPass(c *check, share wholetable.Share) *pass {
	return &pass{
		check:  c,
		share:  share,
		budget: wholetable.Budget{Most: c.Bytes},
		claims: map[key]*claim{},
		strays: map[key]*stray{},
	}
}

// take counts the memory of an entry.
func (p *pass) take(n int) error { return p.budget.Take(n + entryBytes) }

// entryBytes is about what an entry takes on top of its bytes.
const entryBytes = 200

// read reads both families.
func (p *pass) read(ctx context.Context) error {
	if err := p.scan(ctx, encoding.FamilyID, p.addForward, p.compareForward); err != nil {
		return err
	}
	return p.scan(ctx, encoding.FamilyName, p.addReverse, p.compareReverse)
}

// perLookup is the number of mappings whose other side is read at a time, lookupBytes about
// that of their bytes: names can be long.
const (
	perLookup   = 1000
	lookupBytes = 1 << 20
)

// scan reads a family. add returns the mapping that a cell is, if it is one; compare gets
// those, many at a time.
func (p *pass) scan(
	ctx context.Context, family string, add func(row []byte, c store.Cell) (mapping, bool, error),
	compare func(context.Context, []mapping) error,
) error {
	var batch []mapping
	size := 0
	progress := func(rows int) { p.Progress(fmt.Sprintf("%s: %d rows of family %s read", p.Table, rows, family)) }
	for row, err := range wholetable.Counted(ctx, p.Store, store.Scan{Table: p.Table, Family: family}, perLookup,
		progress) {
		if err != nil {
			return err
		}

		for _, c := range row.Cells {
			m, ok, err := add(row.Key, c)
			if err != nil {
				return err
			}
			if ok {
				batch = append(batch, m)
				size += len(m.name) + len(m.uid)
			}
		}
		if len(batch) >= perLookup || size >= lookupBytes {
			if err := compare(ctx, batch); err != nil {
				return err
			}
			batch, size = batch[:0], 0
		}
	}
	return compare(ctx, batch)
}

// addForward reads a cell that maps a name to a UID.
func (p *pass) addForward(row []byte, c store.Cell) (m mapping, ok bool, err error) {
	kind, meta, known := encoding.ParseUIDKind(c.Qualifier)
	switch {
	// The row of counters holds no name.
	case bytes.Equal(row, encoding.CounterRow) && (known || string(c.Qualifier) == encoding.ChangesQualifier):
		return m, false, nil
	case !known || meta:
		return m, false, p.unknown(row, c, encoding.FamilyID)
	// Both families are shared out by UID, so that the two sides of a mapping come together.
	case !p.share.Has(c.Value):
		return m, false, nil
	}

	count := &p.ids[kind]
	count.forward++
	// Reported at once: that a UID of another width does not lead back is no second fault.
	if want := p.Schema.UIDWidth(kind); len(c.Value) != want {
		return m, false, p.find(Finding{
			Of: kind.String(),
			Text: fmt.Sprintf("%q has UID %s of %d bytes, want %d (is the UID width right?)",
				shown(string(row)), encoding.UID(c.Value), len(c.Value), want),
		})
	}
	count.largest = max(count.largest, encoding.UIDNumber(c.Value))
	return mapping{kind, string(row), string(c.Value)}, true, nil
}

// addReverse reads a cell that maps a UID to a name.
func (p *pass) addReverse(row []byte, c store.Cell) (m mapping, ok bool, err error) {
	kind, meta, known := encoding.ParseUIDKind(c.Qualifier)
	switch q := string(c.Qualifier); {
	case meta || q == encoding.TSMetaQualifier || q == encoding.MetaCounterQualifier:
		// No mappings; old versions kept those of series here.
		return m, false, nil
	case !known:
		return m, false, p.unknown(row, c, encoding.FamilyName)
	case !p.share.Has(row):
		return m, false, nil
	}

	count := &p.ids[kind]
	count.reverse++
	if want := p.Schema.UIDWidth(kind); len(row) != want {
		return m, false, p.find(Finding{
			Of: kind.String(),
			Text: fmt.Sprintf("UID %s, which leads to %q, has %d bytes, want %d (is the UID width right?)",
				encoding.UID(row), shown(string(c.Value)), len(row), want),
		})
	}
	count.largest = max(count.largest, encoding.UIDNumber(row))
	return mapping{kind, string(c.Value), string(row)}, true, nil
}

// find keeps a finding.
func (p *pass) find(f Finding) error {
	p.findings = append(p.findings, f)
	return p.take(len(f.Text) + len(f.Repair))
}

// unknown finds a column that does not belong there.
func (p *pass) unknown(row []byte, c store.Cell, family string) error {
	// The pass of each share reads all rows: one of them reports this column.
	if !p.share.Has(row) {
		return nil
	}
	f := Finding{
		Of:      fmt.Sprintf("row %x", row),
		Warning: true,
		Text:    fmt.Sprintf("unknown column %s:%q of %d bytes", family, shown(string(c.Qualifier)), len(c.Value)),
	}
	if p.DeleteUnknown {
		f.Repair = "the column is deleted"
		f.steps = []step{{
			row:       string(row),
			family:    family,
			qualifier: string(c.Qualifier),
			old:       append([]byte{}, c.Value...),
		}}
	}
	return p.find(f)
}

// compareForward keeps the UIDs that do not lead back to the names of mappings.
func (p *pass) compareForward(ctx context.Context, all []mapping) error {
	uids := make([]string, len(all))
	for i, m := range all {
		uids[i] = m.uid
	}
	rows, err := p.cells(ctx, encoding.FamilyName, uids)
	if err != nil {
		return err
	}

	for _, m := range all {
		back := rows.Value(m.uid, m.kind.String())
		if back != nil && string(back) == m.name {
			continue
		}

		c := p.claims[key{m.kind, m.uid}]
		// Several names may lead to one UID.
		if c == nil {
			c = &claim{kind: m.kind, uid: m.uid, back: back}
			p.claims[key{m.kind, m.uid}] = c
		}
		c.names = append(c.names, m.name)
		// About: a UID counts in the key of the map and in the claim.
		if err := p.take(len(m.name) + len(back) + 2*len(m.uid)); err != nil {
			return err
		}
	}
	return nil
}

// compareReverse keeps the UIDs that lead to names which do not lead to them, unless other
// names do: those have claims.
func (p *pass) compareReverse(ctx context.Context, all []mapping) error {
	var names []string
	for _, m := range all {
		// What can be no row was never a name, and cannot be looked up.
		if usable(m.name) {
			names = append(names, m.name)
		}
	}
	rows, err := p.cells(ctx, encoding.FamilyID, names)
	if err != nil {
		return err
	}

	for _, m := range all {
		own := rows.Value(m.name, m.kind.String())
		if p.claims[key{m.kind, m.uid}] != nil || own != nil && string(own) == m.uid {
			continue
		}

		s := p.strays[key{m.kind, m.name}]
		if s == nil {
			s = &stray{kind: m.kind, name: m.name, own: own}
			p.strays[key{m.kind, m.name}] = s
		}
		s.uids = append(s.uids, m.uid)
		if err := p.take(2*len(m.name) + len(m.uid) + len(own)); err != nil {
			return err
		}
	}
	return nil
}

// cells reads the rows of some keys in a family.
func (c *check) cells(ctx context.Context, family string, keys []string) (wholetable.Cells, error) {
	return wholetable.Lookup(ctx, c.Store, c.Table, family, keys)
}
