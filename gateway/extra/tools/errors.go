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

	// errName is returned for a name that an import line cannot hold.
	errName = errors.New("it has a blank, a line end, an equals sign or a leading #, which an import line cannot hold")
)
