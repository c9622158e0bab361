package main

import (
	"io"

	"downpour/pushdown/process/settings"

	"github.com/caarlos0/env/v9"
)

// dump prints cells annotated: one JSON object {table,row,family,qualifier,
// value} a line, bytes in hex, under the layout of the environment.
func dump(_ []string, in io.Reader, out io.Writer) error {
	var cfg settings.Common
	if err := env.ParseWithOptions(&cfg, env.Options{FuncMap: settings.NumberParsers[env.ParserFunc]()}); err != nil {
		return err
	}
	return cfg.Schema().Dump(out, in)
}
