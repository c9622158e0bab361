package lease

import (
	"context"
	"errors"
	"fmt"

	"downpour/pushdown/store"
)

// Family is the one family of the table.
const Family = "s"

// Table describes Downpour's own table, which has other rows in addition to those of leases.
func Table(name, compression string) store.TableSpec {
	return store.TableSpec{Name: name, Families: []store.FamilySpec{{Name: Family, Attributes: map[string]string{
		"BLOOMFILTER": "ROW", "COMPRESSION": compression, "DATA_BLOCK_ENCODING": "DIFF", "VERSIONS": "1",
	}}}}
}

// CreateTable makes the table if it does not exist.
func CreateTable(ctx context.Context, admin store.Admin, name string) error {
	// If it exists, the right to create tables is not needed.
	there, err := admin.TableExists(ctx, name)
	if err != nil {
		return fmt.Errorf("cannot check whether the table of leases, %s (DOWNPOUR_TABLE_STATE), exists: %w", name, err)
	}
	if there {
		return nil
	}
	if err := admin.CreateTable(ctx, Table(name, "NONE")); err != nil && !errors.Is(err, store.ErrTableExists) {
		return fmt.Errorf("cannot make the table of leases, %s (DOWNPOUR_TABLE_STATE): %w", name, err)
	}
	return nil
}
