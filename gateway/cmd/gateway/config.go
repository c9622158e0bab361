package main

import (
	"errors"
	"os"
	"strings"

	"github.com/caarlos0/env/v9"

	"downpour/gateway"
	"downpour/gateway/admin/opentsdbconf"
	"downpour/gateway/extra"
	"downpour/pushdown/process/settings"
)

// environment is the process's, by name.
func environment() map[string]string {
	m := map[string]string{}
	for _, e := range os.Environ() {
		name, value, _ := strings.Cut(e, "=")
		m[name] = value
	}
	return m
}

// configure reads an environment, and the opentsdb.conf that it names. notes
// are for the log at start: what of that file is not honoured. The config is
// never nil, for -print-config.
func configure(environ map[string]string) (cfg *gateway.Config, notes []string, err error) {
	// Looked for in what the user has set: the file's keys become variables that are all known.
	unknown := settings.Unknown(list(environ))
	conf := new(opentsdbconf.Conf) // without a file it has set nothing
	if path := environ["DOWNPOUR_OPENTSDB_CONF"]; path != "" {
		var read *opentsdbconf.Conf
		if read, err = opentsdbconf.Load(path); err == nil {
			conf = read
			environ, notes, err = conf.Environment(environ)
		}
	}
	cfg = &gateway.Config{Extras: extra.All()}
	var parseErr error
	for _, part := range settings.Structs(cfg) {
		options := env.Options{
			Environment: environ,
			FuncMap:     settings.NumberParsers[env.ParserFunc](), //fault:numbers-without-units TestConfigure_numbers
		}
		parseErr = errors.Join(parseErr, conf.Blame(named(env.ParseWithOptions(part, options), part)))
	}
	cfg.SetDefaults()
	if err = errors.Join(err, parseErr, unknown); err != nil && parseErr != nil {
		return cfg, notes, err // its fields are not what was meant
	}
	return cfg, notes, errors.Join(err, conf.Blame(cfg.Validate()))
}

func list(environ map[string]string) (out []string) {
	for name, value := range environ {
		out = append(out, name+"="+value)
	}
	return out
}
