package pebble

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A backup is a data directory, and in it a file of this name, which says what is in it.
const listName = "backup.json"

// Formats of that file: 2 is that of a store that may have sealed columns, which releases that know format 1 alone
// could not read.
const (
	listFormat        = 1
	listFormatColumns = 2
)

// backupName is how a backup is named by its time, in UTC.
const backupName = "20060102T150405.000Z"

// backupList is what the file of a backup says:
//
//	{"format":1,"taken":"2026-11-25T13:38:25.25Z","files":[
//	 {"name":"000005.sst","bytes":820,"sha256":"9f86…","modified":1795613905250000000,"inode":17}]}
type backupList struct {
	Format int          `json:"format"`
	Taken  time.Time    `json:"taken"`
	Files  []backupFile `json:"files"`
}

// backupFile is one file of a backup.
type backupFile struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // hex
	origin
}

// origin says which file of a store a table is. Files of tables are never changed, but two
// stores, or one that was restored, may have tables of the same name.
type origin struct {
	Modified int64  `json:"modified"`        // ns since 1970
	Inode    uint64 `json:"inode,omitempty"` // 0 where the file system has none
}

// originOf returns the origin of a file, and its size.
func originOf(info vfs.FileInfo) (o origin, bytes int64) {
	o.Modified = info.ModTime().UnixNano()
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		o.Inode = stat.Ino
	}
	return o, info.Size()
}

// readList reads the list of a backup. fs.ErrNotExist is the error of a directory that is
// none.
func readList(files vfs.FS, dir string) (*backupList, error) {
	text, err := readFile(files, files.PathJoin(dir, listName))
	if err != nil {
		return nil, err
	}
	l := new(backupList)
	if err := json.Unmarshal(text, l); err != nil {
		return nil, fmt.Errorf("backup %s: %s is damaged: %w", dir, listName, err)
	}
	if l.Format != listFormat && l.Format != listFormatColumns {
		return nil, fmt.Errorf("backup %s: %s has format %d, want %d or %d: it is of a later version",
			dir, listName, l.Format, listFormat, listFormatColumns)
	}
	for _, f := range l.Files {
		// A list must not make a restore read or write elsewhere.
		if !isStoreFile(f.Name) {
			return nil, fmt.Errorf("backup %s: %s names the file %q, want those of a store", dir, listName, f.Name)
		}
	}
	if len(l.Files) == 0 {
		return nil, fmt.Errorf("backup %s: %s names no file", dir, listName)
	}
	return l, nil
}

// write writes the list into the directory of a backup.
func (l *backupList) write(files vfs.FS, dir string) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return writeFile(files, files.PathJoin(dir, listName), append(text, '\n'))
}

// bytes is the size of all files.
func (l *backupList) bytes() (n int64) {
	for _, f := range l.Files {
		n += f.Bytes
	}
	return n
}

// isStoreFile reports whether a name is that of a file that a store needs.
func isStoreFile(name string) bool {
	if strings.ContainsAny(name, `/\`) {
		return false
	}
	for _, suffix := range []string{".sst", ".log"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	for _, prefix := range []string{"MANIFEST-", "copy.MANIFEST-", "OPTIONS-", "marker."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// backupsIn returns the names of the backups in a directory, from the oldest to the newest.
// One that is begun and not complete has another name.
func backupsIn(files vfs.FS, dir string) (names []string, err error) {
	all, err := files.List(dir)
	for _, name := range all {
		if _, err := time.Parse(backupName, name); err == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, err
}

// findBackup returns the path and the list of a backup: dir itself, or the newest one in it.
func findBackup(files vfs.FS, dir string) (path string, l *backupList, err error) {
	l, err = readList(files, dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, l, err
	}
	names, err := backupsIn(files, dir)
	if err != nil {
		return "", nil, err
	}
	if len(names) == 0 {
		return "", nil, fmt.Errorf("%s is no backup, and holds none: it has no %s", dir, listName)
	}
	path = files.PathJoin(dir, names[len(names)-1])
	l, err = readList(files, path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s is no backup: it has no %s", path, listName)
	}
	return path, l, err
}
