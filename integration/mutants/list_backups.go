package main

// ofBackups are faults of backups: points that are acknowledged and not in them, and restores
// that put in place what is not whole.
var ofBackups = []mutant{
	{
		name: "checkpoint-of-a-damaged-log", file: "pushdown/store/pebble/checkpoint.go",
		old: "hole >= 0 && (!last || !marked)", new: "hole >= 0 && !last",
		test: "TestCompleteLogs",
	}, {
		name: "checkpoints-logs-taken-for-the-stores", file: "pushdown/store/pebble/disk/disk.go",
		old: "{ return d.PathDir(name) != d.dir }", new: "{ return false }",
		test: "pushdown/store/pebble TestCheckpoint_failure",
	}, {
		name: "backup-named-before-its-files", file: "pushdown/store/pebble/backup.go",
		old: "	if err := syncDir(w.files, w.dir); err != nil {\n		return err\n	}\n", new: "",
		test: "TestBackUp_crash",
	}, {
		name: "backup-takes-over-tables-of-another-store", file: "pushdown/store/pebble/backup.go",
		old: " && old.origin == f.origin", new: "",
		test: "TestBackUp_incremental",
	}, {
		name: "backup-in-the-store", file: "pushdown/store/pebble/backup.go",
		old: "real, err := filepath.EvalSymlinks(dir)", new: "real, err := filepath.Abs(dir)",
		test: "TestBackUp_place",
	}, {
		name: "restore-of-files-anywhere", file: "pushdown/store/pebble/backuplist.go",
		old: "	if strings.ContainsAny(name, `/\\`) {\n", new: "	if false {\n",
		test: "TestRestore_refused",
	}, {
		name: "restore-is-a-database-before-its-files", file: "pushdown/store/pebble/restore.go",
		old: "	if err := errors.Join(syncDir(r.files, r.temporary), syncDir(r.files, r.dir)); err != nil {\n" +
			"		return err\n	}\n	if err := r.move(r.manifestsMarker); err != nil {\n",
		new:  "	if err := r.move(r.manifestsMarker); err != nil {\n",
		test: "TestRestore_crash",
	}, {
		name: "restore-over-a-store",
		file: "pushdown/store/pebble/restore.go",
		old:  "case unfinished && (name == restoringName || isStoreFile(name)):",
		new:  "case isStoreFile(name) || unfinished && name == restoringName:",
		test: "gateway/extra/tools TestBackup",
	}, {
		name: "checkpoint-by-who-may-write", file: "gateway/extra/tools/extra.go",
		old: `"api/tools/checkpoint": {Scope: auth.Admin,`, new: `"api/tools/checkpoint": {Scope: auth.Write,`,
		test: "gateway/extra/tools TestRoutes_doors",
	}, {
		name: "checkpoints-at-a-time", file: "gateway/extra/tools/backup.go",
		old: "	case h.holding <- struct{}{}:\n		defer func() { <-h.holding }()\n", new: "	default:\n",
		test: "gateway/extra/tools TestServedCheckpoint",
	},
}
