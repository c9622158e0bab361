package tools

import (
	"errors"
	"fmt"
)

// Reading and writing import lines.
var (
	// errLong is returned for a line that is longer than maxLine. Reading goes on
	// after it.
	errLong = fmt.Errorf("is longer than %d bytes", maxLine)

	// errStop is returned by readChunk after a refused line, if errors are not
	// skipped.
	errStop = errors.New("the import stops at a line that is refused")

	// errName is returned for a name that an import line cannot hold.
	errName = errors.New("it has a blank, a line end, an equals sign or a leading #, which an import line cannot hold")
)

// errInUse is returned for the deletion of a name while points have its UID.
var errInUse = errors.New("has data")

// errRuns is returned while a tool runs that a gateway runs one of at a time.
var errRuns = errors.New("runs, and one at a time may")
