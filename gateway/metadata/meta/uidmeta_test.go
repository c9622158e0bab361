package meta

import (
	"testing"

	"downpour/encoding"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
)

// Where mappings have the times of their UIDs, a UID is recorded without a UIDMeta, a change of the meta data keeps
// that time, and so does a rename, which writes the mapping again.
func TestUIDMeta_mappingTimes(t *testing.T) {
	s, u := open(t), encoding.UID{0, 0, 1}
	cfg := catalogConfig(s)
	names := uid.New(uid.Config{Store: s, Table: "tsdb-uid", Schema: cfg.Schema, MappingTimes: true})
	cfg.MappingTimes, cfg.Names = true, names
	for _, m := range []store.Mutation{
		{Row: u, Family: encoding.FamilyName, Qualifier: []byte("tagv"), Value: []byte("web01")},
		{Row: []byte("web01"), Family: encoding.FamilyID, Qualifier: []byte("tagv"), Value: u},
	} {
		m.Timestamp = created*1000 + 999
		if err := s.Apply(t.Context(), "tsdb-uid", []store.Mutation{m}); err != nil {
			t.Fatal(err)
		}
	}
	tr := NewTracker(TrackerConfig{Config: cfg, Flags: all})
	tr.Assigned(encoding.UIDTagV, "web01", u)
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}

	c := New(cfg)
	check := func(when, name, notes string) {
		t.Helper()
		m, err := c.UIDMeta(t.Context(), encoding.UIDTagV, u)
		if err != nil || m.Created != created || m.Name != name || m.Notes != notes {
			t.Errorf("%s: %+v, %v, want %s with notes %q of %d", when, m, err, name, notes, created)
		}
	}
	_, stored := cells(t, s, "tsdb-uid")["000001:tagv_meta"]
	if stored {
		t.Error("a UID that was assigned has a UIDMeta, want none")
	}
	check("assigned", "web01", "")

	if err := names.Rename(t.Context(), encoding.UIDTagV, "web01", "web02"); err != nil {
		t.Fatal(err)
	}
	check("renamed", "web02", "")

	if err := c.DeleteUIDMeta(t.Context(), encoding.UIDTagV, u); err != nil {
		t.Fatal(err)
	}
	if m, err := c.UIDMeta(t.Context(), encoding.UIDTagV, u); err != nil || m.Created <= created {
		t.Errorf("renamed and deleted: %+v, %v, want the time of the rename", m, err)
	}
}

// A change of a UIDMeta that is not stored keeps the time of the mapping.
func TestChangeUIDMeta_mappingTimes(t *testing.T) {
	s, u, notes := open(t), encoding.UID{0, 0, 1}, "edge"
	cfg := catalogConfig(s)
	cfg.MappingTimes = true
	mapping := store.Mutation{Row: u, Family: encoding.FamilyName, Qualifier: []byte("tagv"), Value: []byte("web01"),
		Timestamp: created * 1000}
	if err := s.Apply(t.Context(), "tsdb-uid", []store.Mutation{mapping}); err != nil {
		t.Fatal(err)
	}
	m, err := New(cfg).ChangeUIDMeta(t.Context(), UIDChange{Kind: encoding.UIDTagV, UID: u, Notes: &notes}, true)
	if err != nil || m.Created != created || m.Notes != notes {
		t.Errorf("changed: %+v, %v, want notes %q and the time %d", m, err, notes, created)
	}
}
