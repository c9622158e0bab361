package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// state says how far a file is imported. It is kept next to the file as FILE.import
// until the command has finished:
//
//	{"store":"pebble:data tsdb","offset":524288,"lines":9000,"crc32":305419896,
//	 "points":8998,"refused":0,"blank":2}
//
// Everything before offset is durable. What comes after it may be durable, too; it is
// imported again, which stores the same cells.
type state struct {
	// Store is the store and the table that the points went to.
	Store string `json:"store"`
	position
	counts
}

// counts are the lines of a file by what became of them. Their sum is the number of
// its lines.
type counts struct {
	Points  int64 `json:"points"`            // durable
	Meta    int64 `json:"remarks,omitempty"` // durable annotations and meta data
	Refused int64 `json:"refused"`           // reported and left out
	Blank   int64 `json:"blank"`             // blank lines and comments
}

func stateName(file string) string { return file + ".import" }

// loadState reads the state of a file, or returns a new one. The state of an import
// into another store is an error: this store would miss the beginning of the file.
func loadState(file, store string) (*state, error) {
	text, err := os.ReadFile(stateName(file))
	if errors.Is(err, fs.ErrNotExist) {
		return &state{Store: store}, nil
	}
	if err != nil {
		return nil, err
	}

	s := new(state)
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s: %w (remove it to import the file anew)", stateName(file), err)
	}
	if s.Store != store {
		return nil, fmt.Errorf("%s is of an import into %s, this one is into %s: remove it to import the file anew",
			stateName(file), s.Store, store)
	}
	return s, nil
}

// save replaces the state file, so that a crash leaves the old one or the new.
func (s *state) save(file string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}

	temporary := stateName(file) + ".new"
	if err := writeSynced(temporary, append(text, '\n')); err != nil {
		return fmt.Errorf("the state of the import cannot be kept (-no-state does without): %w", err)
	}
	return os.Rename(temporary, stateName(file))
}

// writeSynced writes a file and waits until the disk has it: of a file that is renamed
// before that, a machine that loses power may keep the name alone.
func writeSynced(name string, text []byte) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}
