// Package tables makes OpenTSDB's four tables, those of rollups and our own, and checks, before anything is
// read or written, that the rows found in them have the configured layout.
package tables

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"downpour/encoding"
	"downpour/pushdown/lease"
	"downpour/pushdown/store"
)

// Names are the names of the four tables, of those of rollups and pre-aggregates, and of our
// own, which may be empty for none.
type Names struct {
	Data, UID, Meta, Tree string
	Rollups               []string
	State                 string
}

// Specs returns the tables as OpenTSDB's script creates them: bloom filter per row, DIFF
// block encoding, one version of points, and the compression given (NONE, SNAPPY, LZO,
// …). With salted keys the data table and those of rollups are split between the salt
// buckets.
// Source: src/create_table.sh.
func Specs(n Names, schema encoding.Schema, compression string) []store.TableSpec {
	family := func(name string, versions string) store.FamilySpec {
		a := map[string]string{"BLOOMFILTER": "ROW", "COMPRESSION": compression, "DATA_BLOCK_ENCODING": "DIFF"}
		// In OpenTSDB's script only tables of the family t bound the versions.
		if versions != "" {
			a["VERSIONS"] = versions
		}
		return store.FamilySpec{Name: name, Attributes: a}
	}

	specs := []store.TableSpec{
		{Name: n.UID, Families: []store.FamilySpec{family("id", ""), family("name", "")}},
		{Name: n.Data, Families: []store.FamilySpec{family("t", "1")}, Splits: splits(schema)},
		{Name: n.Tree, Families: []store.FamilySpec{family("t", "1")}},
		{Name: n.Meta, Families: []store.FamilySpec{family("name", "")}},
	}
	if n.State != "" {
		specs = append(specs, lease.Table(n.State, compression))
	}
	for _, name := range n.Rollups {
		specs = append(specs, store.TableSpec{
			Name:     name,
			Families: []store.FamilySpec{family("t", "1")},
			Splits:   splits(schema),
		})
	}
	return specs
}

// FamilyState is the one family of our own table.
const FamilyState = lease.Family

// splits returns the first key of each salt bucket but the first.
func splits(schema encoding.Schema) (keys [][]byte) {
	for bucket := 1; bucket < schema.Buckets(); bucket++ {
		keys = append(keys, schema.AppendSalt(nil, bucket))
	}
	return keys
}

// Create creates the tables that do not exist.
func Create(ctx context.Context, admin store.Admin, specs []store.TableSpec) error {
	for _, spec := range specs {
		if err := admin.CreateTable(ctx, spec); err != nil && !errors.Is(err, store.ErrTableExists) {
			return fmt.Errorf("create table %s: %w", spec.Name, err)
		}
	}
	return nil
}

// Check returns an error that names the first table that does not exist. It does not
// look for the meta and tree tables, which only some routes need.
func Check(ctx context.Context, admin store.Admin, n Names) error {
	for _, name := range []string{n.Data, n.UID} {
		ok, err := admin.TableExists(ctx, name)
		if err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
		if !ok {
			return fmt.Errorf("%w: %s (create the tables with -create-tables, or name others with DOWNPOUR_TABLE_DATA "+
				"and DOWNPOUR_TABLE_UID)", store.ErrNoTable, name)
		}
	}
	return nil
}

// CheckReadable returns an error if access control lets us read less than all of the tables that queries
// read: HBase may leave out the rest without a word. unknown is called if that cannot be found out.
func CheckReadable(ctx context.Context, st store.Cells, n Names, unknown func(error)) error {
	return store.CheckReadable(ctx, st, ReadFamilies(n), unknown)
}

// ReadFamilies returns what must be readable in full, so that queries are answered in full.
func ReadFamilies(n Names) []store.Families {
	of := []store.Families{
		{Table: n.Data, Names: []string{encoding.FamilyData}},
		{Table: n.UID, Names: []string{encoding.FamilyID, encoding.FamilyName}},
	}
	for _, name := range n.Rollups {
		of = append(of, store.Families{Table: name, Names: []string{encoding.FamilyData}})
	}
	return of
}

// sampleRows is how many rows the check of the layout looks at.
const sampleRows = 200

// CheckLayout reads a few rows of the data table and returns an error if they do not have
// the layout of the schema. Nothing else would show that a salt or UID width is wrong:
// queries would find nothing, and puts would store what OpenTSDB cannot find. Some series
// may lie under another salt than their own, as they do after the number of buckets was
// raised; queries read all buckets. If most series do, the number of buckets is wrong.
func CheckLayout(ctx context.Context, s store.Reader, table string, schema encoding.Schema) error {
	return checkLayout(ctx, s, table, layoutCheck{schema: schema})
}

// CheckMostRows is CheckLayout for those who look for damaged rows: it returns an error only
// if most of the rows do not have the layout, because then the schema is wrong and not the
// rows.
func CheckMostRows(ctx context.Context, s store.Reader, table string, schema encoding.Schema) error {
	return checkLayout(ctx, s, table, layoutCheck{schema: schema, tolerant: true})
}

// checkLayout gives the first rows of a table to a check and returns what it finds.
func checkLayout(ctx context.Context, s store.Reader, table string, c layoutCheck) error {
	for rows, err := range store.Blocks(ctx, s, store.Scan{
		Table:    table,
		Family:   "t",
		MaxRows:  sampleRows,
		KeysOnly: true,
	}) {
		if err != nil {
			return err
		}
		if err := c.add(rows); err != nil {
			return c.in(table, err)
		}
	}

	return c.in(table, c.result())
}

// layoutCheck counts the rows that it is given.
type layoutCheck struct {
	schema        encoding.Schema
	tolerant      bool  // a row may have no layout at all, and counts as foreign
	rows, foreign int   // all rows, and those under another salt than their own or of no full hour
	first         error // of the first foreign row
}

// add checks rows. It returns an error for a row that has no layout of the schema at all,
// unless it is tolerant.
func (c *layoutCheck) add(rows []store.Row) error {
	for _, r := range rows {
		err := checkKey(c.schema, r.Key)
		if err != nil {
			err = fmt.Errorf("row %x: %w", r.Key, err)
		}
		c.rows++

		var salt *foreignSaltError
		var time *baseTimeError
		if errors.As(err, &salt) || errors.As(err, &time) || err != nil && c.tolerant {
			c.foreign++
			c.first = cmp.Or(c.first, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// result returns an error if most rows lie under another salt than their own, or begin at no full hour.
func (c *layoutCheck) result() error {
	if c.foreign*2 > c.rows {
		return c.first
	}
	return nil
}

// in adds the table and the settings to an error.
func (c *layoutCheck) in(table string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("table %s does not have the layout of DOWNPOUR_SALT_WIDTH, DOWNPOUR_SALT_BUCKETS and "+
		"DOWNPOUR_UID_WIDTH_*: %w", table, err)
}

// foreignSaltError is returned for a row whose salt is that of a bucket, but not of the
// bucket of its series.
type foreignSaltError struct{ got, want []byte }

// Error names both salts.
func (e *foreignSaltError) Error() string {
	return fmt.Sprintf("its salt is %x, the series' is %x", e.got, e.want)
}

// baseTimeError is returned for a row whose base time is no full hour. TSDs have written such rows,
// but few: of most rows it says that the base time stands elsewhere.
type baseTimeError struct{ got uint32 }

// Error names the base time.
func (e *baseTimeError) Error() string {
	return fmt.Sprintf("its base time would be %d, which is no multiple of %d", e.got, encoding.RowSeconds)
}

// wrapped reports whether a base time is that of a point after 2106 that a TSD has stored by its
// lower 32 bits: 2^32 s and 2^33 s are no whole hours.
func wrapped(base uint32) bool {
	late := int64(base) % encoding.RowSeconds
	return late == encoding.RowSeconds-(1<<32)%encoding.RowSeconds ||
		late == encoding.RowSeconds-(1<<33)%encoding.RowSeconds
}

// checkKey checks one row key against the schema.
func checkKey(schema encoding.Schema, key []byte) error {
	k, err := schema.ParseRowKey(key)
	if err != nil {
		return err
	}
	if encoding.UIDNumber(k.Metric) == 0 {
		return nil // a global annotation; OpenTSDB salts no key of this metric, even one with tags
	}

	if encoding.OffHour(k.BaseTime) && !wrapped(k.BaseTime) {
		return &baseTimeError{k.BaseTime}
	}
	if len(k.Tags) == 0 {
		return errors.New("it would have no tags")
	}
	if bucket := encoding.UIDNumber(k.Salt); schema.SaltWidth > 0 && bucket >= uint64(schema.SaltBuckets) {
		return fmt.Errorf("its salt is %x, which is none of %d buckets and would never be read", k.Salt,
			schema.SaltBuckets)
	}

	want := schema.AppendSalt(nil, schema.Salt(k.Metric, k.Tags))
	if string(k.Salt) != string(want) {
		return &foreignSaltError{k.Salt, want}
	}
	return nil
}
