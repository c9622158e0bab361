package uid

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/encoding"
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble"
)

// patient counts the calls that wait for the disk.
type patient struct {
	*pebble.Store
	waits int
}

func (p *patient) Features() store.Features {
	f := p.Store.Features()
	f.Staged = patientStaged{f.Staged, p}
	return f
}

// patientStaged are the calls that do not wait, and Sync, which does.
type patientStaged struct {
	store.Staged
	of *patient
}

func (s patientStaged) Sync(ctx context.Context) error {
	s.of.waits++
	return s.Staged.Sync(ctx)
}

func (p *patient) Increment(ctx context.Context, table string, cell store.CellKey, delta int64) (int64, error) {
	p.waits++
	return p.Store.Increment(ctx, table, cell, delta)
}

func (p *patient) CompareAndPut(ctx context.Context, table string, cell store.CellKey,
	expected, value []byte) (bool, error) {
	p.waits++
	return p.Store.CompareAndPut(ctx, table, cell, expected, value)
}

// Assign returns once the UID survives a crash, also if Staged has assigned it before without a
// wait. A staged UID survives a crash once rows that were written after it do.
func TestAssign_durable(t *testing.T) {
	files := vfs.NewCrashableMem()
	s, err := pebble.Open("db", pebble.Options{FS: files})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	spec := store.TableSpec{Name: table, Families: []store.FamilySpec{{Name: "id"}, {Name: "name"}}}
	if err := s.CreateTable(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	p := &patient{Store: s}
	d := dictionary(p)
	assign := func(d interface {
		Assign(context.Context, encoding.UIDKind, string) (encoding.UID, error)
	}, name string, want uint64, wantWaits int) {
		t.Helper()
		before := p.waits
		u, err := d.Assign(t.Context(), encoding.UIDMetric, name)
		if err != nil || encoding.UIDNumber(u) != want || p.waits-before != wantWaits {
			t.Errorf("%s: %s, %v, %d waits for the disk, want %d and %d waits", name, u, err, p.waits-before, want,
				wantWaits)
		}
	}
	assign(Staged{d}, "a", 1, 0)
	assign(Staged{d}, "b", 2, 0)
	assign(d, "b", 2, 1)
	survives(t, files, map[string]uint64{"a": 1, "b": 2})
	assign(d, "c", 3, 1)
	survives(t, files, map[string]uint64{"c": 3})
	assign(Staged{d}, "d", 4, 0)
	row := store.Mutation{Row: []byte("any"), Family: "id", Qualifier: []byte("q"), Value: []byte("v")}
	if err := p.Apply(t.Context(), table, []store.Mutation{row}); err != nil {
		t.Fatal(err)
	}
	survives(t, files, map[string]uint64{"d": 4})
}

// survives checks the UIDs of names after a crash in which all that was not synced is lost.
func survives(t *testing.T, files *vfs.MemFS, want map[string]uint64) {
	t.Helper()
	s, err := pebble.Open("db", pebble.Options{FS: files.CrashClone(vfs.CrashCloneCfg{})})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, id := range want {
		u, err := dictionary(s).Resolve(t.Context(), encoding.UIDMetric, name)
		if err != nil || encoding.UIDNumber(u) != id {
			t.Errorf("after a crash %s is %s, %v, want %d", name, u, err, id)
			continue
		}
		if back, err := dictionary(s).Name(t.Context(), encoding.UIDMetric, u); err != nil || back != name {
			t.Errorf("after a crash %s is named %q, %v, want %q", u, back, err, name)
		}
	}
}
