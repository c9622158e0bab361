// Package tables makes OpenTSDB's four tables and checks, before anything is
// read or written, that the rows found in them have the configured layout.
package tables

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Names are the names of the four tables.
type Names struct{ Data, UID, Meta, Tree string }

// Specs are the tables as OpenTSDB's script creates them: bloom filter per row,
// DIFF block encoding, one version of points, compression by choice (NONE,
// SNAPPY, LZO, …). The data table of a salted layout is split by salt bucket.
// Source: src/create_table.sh.
func Specs(n Names, schema encoding.Schema, compression string) []store.TableSpec {
	family := func(name string, versions string) store.FamilySpec {
		a := map[string]string{"BLOOMFILTER": "ROW", "COMPRESSION": compression, "DATA_BLOCK_ENCODING": "DIFF"}
		if versions != "" {
			a["VERSIONS"] = versions
		}
		return store.FamilySpec{Name: name, Attributes: a}
	}
	return []store.TableSpec{
		{Name: n.UID, Families: []store.FamilySpec{family("id", ""), family("name", "")}},
		{Name: n.Data, Families: []store.FamilySpec{family("t", "1")}, Splits: splits(schema)},
		{Name: n.Tree, Families: []store.FamilySpec{family("t", "1")}},
		{Name: n.Meta, Families: []store.FamilySpec{family("name", "")}},
	}
}

func splits(schema encoding.Schema) (keys [][]byte) {
	for bucket := 1; bucket < schema.Buckets(); bucket++ {
		keys = append(keys, schema.AppendSalt(nil, bucket))
	}
	return keys
}

// Create creates the tables that are missing.
func Create(ctx context.Context, admin store.Admin, specs []store.TableSpec) error {
	for _, spec := range specs {
		if err := admin.CreateTable(ctx, spec); err != nil && !errors.Is(err, store.ErrTableExists) {
			return fmt.Errorf("create table %s: %w", spec.Name, err)
		}
	}
	return nil
}

// Check returns an error that names the first table that is not there. Meta
// and tree tables are needed only by what uses them.
func Check(ctx context.Context, admin store.Admin, n Names) error {
	for _, name := range []string{n.Data, n.UID} {
		ok, err := admin.TableExists(ctx, name)
		if err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
		if !ok {
			return fmt.Errorf("%w: %s (create the tables with -create-tables, or name others with DOWNPOUR_TABLE_DATA and DOWNPOUR_TABLE_UID)", store.ErrNoTable, name)
		}
	}
	return nil
}

// sampleRows is how many rows the check of the layout looks at.
const sampleRows = 200

// CheckLayout reads a few rows of the data table and returns an error if they
// have another layout than the schema's. A wrong salt or UID width would not
// fail anywhere else: queries would find nothing, and puts would store what
// OpenTSDB cannot find. Some series may lie under another salt than their own,
// as they do once the number of buckets was raised: queries read all of them.
// If most do, the number is wrong.
func CheckLayout(ctx context.Context, s store.Reader, table string, schema encoding.Schema) error {
	c := layoutCheck{schema: schema}
	for rows, err := range store.Blocks(ctx, s, store.Scan{Table: table, Family: "t", MaxRows: sampleRows, KeysOnly: true}) {
		if err != nil {
			return err
		}
		if err := c.add(rows); err != nil {
			return c.in(table, err)
		}
	}
	return c.in(table, c.verdict())
}

// layoutCheck looks at rows one by one.
type layoutCheck struct {
	schema        encoding.Schema
	rows, foreign int
	first         error // of the foreign ones
}

func (c *layoutCheck) add(rows []store.Row) error {
	for _, r := range rows {
		err := checkKey(c.schema, r.Key)
		if err != nil {
			err = fmt.Errorf("row %x: %w", r.Key, err)
		}
		c.rows++
		if salt := (*foreignSaltError)(nil); errors.As(err, &salt) {
			c.foreign++
			c.first = cmp.Or(c.first, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (c *layoutCheck) verdict() error {
	if c.foreign*2 > c.rows {
		return c.first
	}
	return nil
}

func (c *layoutCheck) in(table string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("table %s does not have the layout of DOWNPOUR_SALT_WIDTH, DOWNPOUR_SALT_BUCKETS and DOWNPOUR_UID_WIDTH_*: %w", table, err)
}

// foreignSaltError is about a row that lies under another of the buckets than
// the hash of its series names.
type foreignSaltError struct{ got, want []byte }

// Error tells both salts.
func (e *foreignSaltError) Error() string {
	return fmt.Sprintf("its salt is %x, the series' is %x", e.got, e.want)
}

func checkKey(schema encoding.Schema, key []byte) error {
	k, err := schema.ParseRowKey(key)
	if err != nil {
		return err
	}
	if encoding.UIDNumber(k.Metric) == 0 {
		return nil // global annotations, never salted
	}
	if k.BaseTime%encoding.RowSeconds != 0 {
		return fmt.Errorf("its base time would be %d, which is no multiple of %d", k.BaseTime, encoding.RowSeconds)
	}
	if len(k.Tags) == 0 {
		return errors.New("it would have no tags")
	}
	if bucket := encoding.UIDNumber(k.Salt); schema.SaltWidth > 0 && bucket >= uint64(schema.SaltBuckets) {
		return fmt.Errorf("its salt is %x, which is none of %d buckets and would never be read", k.Salt, schema.SaltBuckets)
	}
	want := schema.AppendSalt(nil, schema.Salt(k.Metric, k.Tags))
	if string(k.Salt) != string(want) {
		return &foreignSaltError{k.Salt, want}
	}
	return nil
}
