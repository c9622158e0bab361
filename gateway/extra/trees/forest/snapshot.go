package forest

import (
	"context"
	"fmt"
	"time"

	"downpour/gateway/extra/trees/tree"
)

// maxBytes bounds the memory of all trees that new series go through.
const maxBytes = 16 << 20

// snapshot are the enabled trees as they were at one time.
type snapshot struct {
	all     []*tree.Compiled
	custom  bool // a rule reads custom fields
	at      time.Time
	changes int64 // of this process, at the beginning of the reading
}

// enabled returns the enabled trees, read again if they may have changed.
func (f *Forest) enabled(ctx context.Context) (*snapshot, error) {
	s := f.current.Load()
	// Abs, so that a clock that is set back far does not keep the snapshot.
	if s != nil && s.changes == f.changes.Load() && f.cfg.Now().Sub(s.at).Abs() < ReloadAfter {
		return s, nil
	}

	s, err := f.load(ctx)
	if err == nil {
		f.current.Store(s)
	}
	return s, err
}

// load reads and compiles the enabled trees. One that cannot be applied is left out, and the
// log says so once.
func (f *Forest) load(ctx context.Context) (*snapshot, error) {
	s := &snapshot{at: f.cfg.Now(), changes: f.changes.Load()}
	bytes := 0
	err := f.each(ctx, func(_ int, t *tree.Tree) {
		if t == nil || !t.Enabled || len(t.Rules) == 0 {
			return
		}
		// Nothing reads what is for people.
		for i := range t.Rules {
			t.Rules[i].Description, t.Rules[i].Notes = "", ""
		}

		c, err := tree.Compile(*t)
		if err == nil && bytes+c.Bytes() > maxBytes {
			err = fmt.Errorf("the rules of all trees take more than %d MiB", maxBytes>>20)
		}
		if err != nil {
			f.tell(t, err)
			return
		}
		bytes += c.Bytes()
		s.all = append(s.all, c)
		s.custom = s.custom || c.NeedsCustom()
	})
	return s, err
}

// tell logs why a tree takes no series, unless that was logged before.
func (f *Forest) tell(t *tree.Tree, why error) {
	if was, _ := f.told.Swap(t.ID, why.Error()); was != why.Error() {
		f.cfg.Log.Error("a tree takes no series", "tree", t.ID, "name", t.Name, "reason", why)
	}
}
