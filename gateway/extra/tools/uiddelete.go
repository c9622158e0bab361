package tools

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"downpour/encoding"
	"downpour/gateway/extra/tools/uiduse"
)

// deleteRequest asks a gateway to delete a name.
type deleteRequest struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Force bool   `json:"force"`
	// DryRun leaves the name, and says what would be removed.
	DryRun bool `json:"dryRun,omitempty"`
}

// Deleted says what a deletion removed.
type Deleted struct {
	UID encoding.UID `json:"uid"`
	// Meta is set if the UID had a UIDMeta object. Series is the number of series with
	// the UID in the meta table. Both are removed.
	Meta   bool `json:"meta"`
	Series int  `json:"series"`
	// Row is the key of a row of points that stays, although no name finds it any more;
	// nil if there is none.
	Row encoding.UID `json:"row,omitempty"`
}

// deleteOne deletes one name, see deletion. It returns a conflict while rows have the UID, unless it is forced.
func (x *work) deleteOne(ctx context.Context, kind encoding.UIDKind, name string, force bool) (*Deleted, error) {
	// The cached UID may be wrong: another process may have renamed the name.
	u, err := x.Names.Fresh(ctx, kind, name)
	if err != nil {
		return nil, err
	}
	n := &doomed{Key: uiduse.Key{Kind: kind, UID: string(u)}, name: name}
	d := &deletion{work: x, names: []*doomed{n}, force: force}
	if err := d.look(ctx); err != nil {
		return nil, err
	}
	if n.fate == doom {
		err = d.run(ctx)
	}

	switch n.fate {
	case inUse:
		err = errors.Join(conflict("%s %q has data: row %x of table %s holds its UID %s; delete its points first, or "+
			"give -force, which makes them unreadable", kind, name, []byte(n.row.Key), n.row.Table, u), err)
	case changed:
		err = errors.Join(fmt.Errorf("deleting %s %q: its UID was %s, and another process has changed that: "+
			"run it again", kind, name, u), err)
	case replaced:
		err = errors.Join(n.replacedError(), err)
	}
	if err != nil {
		return nil, err
	}
	return &Deleted{UID: u, Meta: n.meta, Series: n.series, Row: n.row.Key}, nil
}

// remove deletes a name.
func (h *served) remove(w http.ResponseWriter, r *http.Request) error {
	var in deleteRequest
	kind, err := decodeKind(w, r, &in, &in.Kind)
	if err != nil {
		return err
	}
	x := &h.work
	if in.DryRun {
		x = h.dry()
	}
	done, err := x.deleteOne(r.Context(), kind, in.Name, in.Force)
	if err != nil {
		return err
	}
	writeObject(w, http.StatusOK, done)
	return nil
}
