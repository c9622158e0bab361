package lease

import (
	"context"
	"errors"
	"fmt"

	"downpour/pushdown/store"
)

// Family is the one family of the table.
const Family = "s"

// Table describes the table of our own, which has other rows beside those of leases.
func Table(name, compression string) store.TableSpec {
	return store.TableSpec{Name: name, Families: []store.FamilySpec{{Name: Family, Attributes: map[string]string{
		"BLOOMFILTER": "ROW", "COMPRESSION": compression, "DATA_BLOCK_ENCODING": "DIFF", "VERSIONS": "1",
	}}}}
}

// CreateTable makes the table if it does not exist.
func CreateTable(ctx context.Context, admin store.Admin, name string) error {
	// Where it exists, the right to make tables is not needed.
	there, err := admin.TableExists(ctx, name)
	if err != nil {
		return fmt.Errorf("cannot tell whether the table of leases, %s (DOWNPOUR_TABLE_STATE), exists: %w", name, err)
	}
	if there {
		return nil
	}
	if err := admin.CreateTable(ctx, Table(name, "NONE")); err != nil && !errors.Is(err, store.ErrTableExists) {
		return fmt.Errorf("cannot make the table of leases, %s (DOWNPOUR_TABLE_STATE): %w", name, err)
	}
	return nil
}
