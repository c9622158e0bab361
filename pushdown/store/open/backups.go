package open

import (
	"context"
	"fmt"
	"strings"

	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble"
)

// Backups are the backups of the embedded store at an address, pebble:DIR. They are files of
// this machine. An error names DOWNPOUR_STORE, the variable that addresses come from.
type Backups struct {
	Address string
	Config  Config
}

// store returns the directory of the store and the options of what is done with its files.
func (b Backups) store() (dir string, opts pebble.Options, err error) {
	dir, ok := strings.CutPrefix(b.Address, "pebble:")
	if !ok {
		return "", opts, fmt.Errorf(
			"DOWNPOUR_STORE=%s: want pebble:DIR, for only an embedded store has files of its own; "+
				"of tables on HBase take snapshots there",
			b.Address)
	}
	return dir, pebble.Options{Logger: b.Config.Log, Grouping: b.Config.Schema.RowHours()}, nil
}

// BackUp makes a backup of a checkpoint of the store in a directory for backups. It keeps some
// of the backups there: all, if keep is 0. See pebble.BackUp.
func (b Backups) BackUp(ctx context.Context, checkpoint, to string, keep int,
	done func(files, of int)) (store.BackupReport, error) {
	dir, opts, err := b.store()
	if err != nil {
		return store.BackupReport{}, err
	}
	return pebble.BackUp(ctx, pebble.Backup{Store: dir, Checkpoint: checkpoint, To: to, Keep: keep, Done: done}, opts)
}

// Restore makes the store from a backup, or from the newest in a directory of backups. See
// pebble.Restore.
func (b Backups) Restore(ctx context.Context, from string, done func(files, of int)) (store.BackupReport, error) {
	dir, opts, err := b.store()
	if err != nil {
		return store.BackupReport{}, err
	}
	report, err := pebble.Restore(ctx, from, dir, opts, done)
	if err != nil {
		err = fmt.Errorf("DOWNPOUR_STORE=%s: %w", b.Address, err)
	}
	return report, err
}

// PlanBackUp returns what BackUp would do, and changes nothing. See pebble.PlanBackUp.
func (b Backups) PlanBackUp(ctx context.Context, to string, keep int) (store.BackupReport, error) {
	dir, opts, err := b.store()
	if err != nil {
		return store.BackupReport{}, err
	}
	return pebble.PlanBackUp(ctx, pebble.Backup{Store: dir, To: to, Keep: keep}, opts)
}

// PlanRestore returns what Restore would do, and changes nothing. See pebble.PlanRestore.
func (b Backups) PlanRestore(ctx context.Context, from string, done func(files, of int)) (store.BackupReport, error) {
	dir, opts, err := b.store()
	if err != nil {
		return store.BackupReport{}, err
	}
	report, err := pebble.PlanRestore(ctx, from, dir, opts, done)
	if err != nil {
		err = fmt.Errorf("DOWNPOUR_STORE=%s: %w", b.Address, err)
	}
	return report, err
}

// Check reads all files of a backup, or of the newest in a directory of backups, and returns
// its path and what is wrong with it.
func (b Backups) Check(ctx context.Context, from string,
	done func(tables, of int)) (path string, report store.CheckReport, err error) {
	_, opts, err := b.store()
	if err != nil {
		return "", report, err
	}
	return pebble.CheckBackup(ctx, from, opts, done)
}
