package pebble

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// If something of a backup could not be read or written, or could not be removed before it, there is no backup.
func TestBackUp_failure(t *testing.T) {
	mem := vfs.NewMem()
	s, _, _ := smallStoreIn(t, mem)
	name, remove, err := s.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := mem.MkdirAll("backups/"+unfinishedPrefix+"begun", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, fault := range []struct {
		kind errorfs.OpKind
		path string // a part of it
	}{
		{errorfs.OpRemoveAll, unfinishedPrefix + "begun"},
		{errorfs.OpStat, name + "/OPTIONS-"},
		{errorfs.OpOpen, name + "/OPTIONS-"},
		{errorfs.OpFileRead, name + "/OPTIONS-"},
		{errorfs.OpCreate, "/OPTIONS-"},
		{errorfs.OpFileWrite, "/OPTIONS-"},
		{errorfs.OpFileSync, "/OPTIONS-"},
		{errorfs.OpOpen, name + "/0"},
		{errorfs.OpFileRead, name + "/0"},
		{errorfs.OpCreate, "/" + listName},
		{errorfs.OpRename, "backups"},
	} {
		files := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == fault.kind && strings.Contains(op.Path, fault.path) {
				return syscall.EIO
			}
			return nil
		}))
		_, err := BackUp(t.Context(), Backup{Store: "data", Checkpoint: name, To: "backups"},
			Options{FS: files, Logger: quiet()})
		names, listErr := backupsIn(mem, "backups")
		if !errors.Is(err, syscall.EIO) || listErr != nil || len(names) != 1 {
			t.Errorf("%v of %s: got %v, backups %v, %v, want %v and one from before",
				fault.kind, fault.path, err, names, listErr, syscall.EIO)
		}
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
}

// A digest is of the whole of a file, however many reads that takes, and of none that cannot be read to its end.
func TestDigest(t *testing.T) {
	var copied bytes.Buffer
	sum, n, err := digest(t.Context(), strings.NewReader("abcdefg"), &copied, make([]byte, 3))
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte("abcdefg"))); sum != want || n != 7 || err != nil ||
		copied.String() != "abcdefg" {
		t.Errorf("got %s of %d bytes, %v, a copy %q, want %s", sum, n, err, &copied, want)
	}
	broken := io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(syscall.EIO))
	if sum, _, err := digest(t.Context(), broken, nil, make([]byte, 3)); sum != "" || err != syscall.EIO {
		t.Errorf("got %q, %v, want %v", sum, err, syscall.EIO)
	}
}
