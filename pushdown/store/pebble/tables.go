package pebble

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"downpour/pushdown/store"
)

// catalogue is the name of the table that lists all tables. It is empty, as no
// user's table's name is, and sorts first. A row's key is a table's name, a family is
// a family of that table, a qualifier the name of an attribute; an empty qualifier
// stands for the family itself.
const catalogue = ""

// tables knows which tables and families exist.
type tables struct {
	mu     sync.RWMutex
	byName map[string][]string // families, ascending
	// unknown says that the catalogue cannot be read. Every table is taken to
	// exist then, so that what can be read still can be.
	unknown bool
}

// load reads the catalogue.
func (t *tables) load(db *pebble.DB) error {
	t.byName = map[string][]string{}
	it, err := db.NewIter(&pebble.IterOptions{
		LowerBound: appendPrefix(nil, catalogue, nil),
		UpperBound: appendTableEnd(nil, catalogue),
	})
	if err != nil {
		t.unknown = true
		return fmt.Errorf("table of tables: %w", unreadable(err))
	}

	for it.First(); it.Valid(); it.Next() {
		key := it.Key()
		at := split(key)
		family, qualifier, ok := parseSuffix(key[at:])
		// Cells with a qualifier are attributes.
		if ok && len(qualifier) == 0 {
			// Without the 00 of the catalogue's empty name, and the one that ends the row.
			name := string(key[1 : at-1])
			t.byName[name] = append(t.byName[name], string(family))
		}
	}

	if err := it.Close(); err != nil {
		t.unknown = true
		return fmt.Errorf("table of tables: %w", unreadable(err))
	}
	return nil
}

// check returns an error unless a table exists, and has the family if one is named.
func (t *tables) check(table, family string) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	// What can be read must stay readable although the catalogue is damaged.
	if t.unknown {
		return nil
	}

	families, ok := t.byName[table]
	if !ok {
		return fmt.Errorf("table %q: %w", table, store.ErrNoTable)
	}
	if family != "" && !slices.Contains(families, family) {
		return fmt.Errorf("table %q has no family %q, it has %q", table, family, families)
	}
	return nil
}

// CreateTable creates a table. It returns store.ErrTableExists if the table exists.
// Splits mean nothing here. Attributes are kept in the catalogue. Those that would
// change what reads return, and that this store does not have, are refused: a TTL,
// and more than one version.
func (s *Store) CreateTable(ctx context.Context, spec store.TableSpec) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.life.RUnlock()
	if err := checkSpec(spec); err != nil {
		return err
	}

	s.tables.mu.Lock()
	defer s.tables.mu.Unlock()
	// With a catalogue that cannot be read, every table is taken to exist.
	if _, ok := s.tables.byName[spec.Name]; ok || s.tables.unknown {
		return fmt.Errorf("table %q: %w", spec.Name, store.ErrTableExists)
	}
	families, err := s.writeSpec(spec)
	if err != nil {
		return fmt.Errorf("cannot create table %q: %w", spec.Name, err)
	}

	s.tables.byName[spec.Name] = families
	return nil
}

// writeSpec writes a table's row of the catalogue and returns its families.
func (s *Store) writeSpec(spec store.TableSpec) (families []string, err error) {
	b := s.newBatch(0)
	for _, f := range spec.Families {
		families = append(families, f.Name)
		b.put(catalogue, []byte(spec.Name), f.Name, nil, s.opts.Now().UnixMilli(), nil)
		for _, name := range slices.Sorted(maps.Keys(f.Attributes)) {
			value := []byte(f.Attributes[name])
			b.put(catalogue, []byte(spec.Name), f.Name, []byte(name), s.opts.Now().UnixMilli(), value)
		}
	}
	slices.Sort(families)
	return families, s.commit(b)
}

// checkSpec returns an error for a table that this store cannot have.
func checkSpec(spec store.TableSpec) error {
	if err := checkName("table", spec.Name); err != nil {
		return err
	}
	if len(spec.Families) == 0 {
		return fmt.Errorf("table %q has no family, want at least one", spec.Name)
	}

	seen := map[string]bool{}
	for _, f := range spec.Families {
		if err := checkFamily(f); err != nil {
			return fmt.Errorf("table %q: %w", spec.Name, err)
		}
		if seen[f.Name] {
			return fmt.Errorf("table %q: family %q twice", spec.Name, f.Name)
		}
		seen[f.Name] = true
	}
	return nil
}

// checkFamily returns an error for attributes that would make reads return something
// else on HBase than here.
func checkFamily(f store.FamilySpec) error {
	if err := checkName("family", f.Name); err != nil {
		return err
	}
	const forever = "2147483647" // HBase's seconds for "never"
	if ttl := f.Attributes["TTL"]; ttl != "" && ttl != forever && !strings.EqualFold(ttl, "FOREVER") {
		return fmt.Errorf("family %q: attribute TTL is %q, want FOREVER: the embedded store forgets nothing",
			f.Name, ttl)
	}
	if v := f.Attributes["VERSIONS"]; v != "" && v != "1" {
		return fmt.Errorf("family %q: attribute VERSIONS is %q, want 1: the embedded store keeps one version",
			f.Name, v)
	}
	return nil
}

// TableExists reports whether a table is there to be read.
func (s *Store) TableExists(ctx context.Context, name string) (bool, error) {
	if err := s.begin(ctx); err != nil {
		return false, err
	}
	defer s.life.RUnlock()
	return s.tables.check(name, "") == nil, nil
}

// Regions returns the one region of a table: the embedded store splits none.
func (s *Store) Regions(ctx context.Context, table string, _, _ []byte) ([]store.Region, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.life.RUnlock()
	if err := s.tables.check(table, ""); err != nil {
		return nil, err
	}
	return []store.Region{{Name: table}}, nil
}
