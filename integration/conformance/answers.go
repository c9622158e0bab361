package conformance

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Answers is a recording of drawn questions. The rows and the questions are not in it: the
// generator makes them again from the same seed.
type Answers struct {
	// Rows is the digest of what the tables held, so that no answer is compared over other rows.
	Rows string
	// UID are cells of the UID table, where OpenTSDB gave the UIDs: row, family, qualifier and value in hex.
	UID [][4]string `json:",omitempty"`
	// Asked has the answers by Key.
	Asked map[string]Answer
}

// Answer is an answer of OpenTSDB.
type Answer struct {
	Status int
	Body   string
}

// Key names a question, which is a path and the body of a POST, or none. Eight bytes of a digest
// tell some hundreds of questions apart.
func Key(path, body string) string {
	digest := sha256.Sum256([]byte(path + "\n" + body))
	return fmt.Sprintf("%x", digest[:8])
}

// Write writes a recording of the name into a folder, in the form that Decode reads. The same
// recording gives the same bytes.
func Write(folder, name string, recording any) error {
	var text bytes.Buffer
	z, err := gzip.NewWriterLevel(&text, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(z).Encode(recording); err != nil {
		return fmt.Errorf("recording %s: %w", name, err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("recording %s: %w", name, err)
	}
	return os.WriteFile(filepath.Join(folder, name+".json.gz"), text.Bytes(), 0o644)
}
