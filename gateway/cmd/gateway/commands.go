package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	osuser "os/user"
	"strconv"
	"strings"
	"syscall"

	"downpour/gateway"
	"downpour/gateway/extra/tools"
	"downpour/pushdown/process/probe"
	"downpour/pushdown/process/version"
	"downpour/pushdown/rpc/auth"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open"
)

// command runs a sub-command.
func command(name string, args []string, in io.Reader, out, errs io.Writer) error {
	// These are no tools: they open no store.
	switch name {
	case "dump":
		return dump(args, in, out)
	case "help":
		return help(args, in, out)
	case "version":
		fmt.Fprintln(out, version.String())
		return nil
	}
	for _, c := range tools.Commands() {
		if c.Name == name {
			return runTool(c, args, in, out, errs)
		}
	}
	return fmt.Errorf("unknown command %q; gateway help lists them", name)
}

// help lists the commands, or explains the one that is named.
func help(args []string, in io.Reader, out io.Writer) error {
	for _, c := range tools.Commands() {
		if len(args) == 1 && c.Name == args[0] {
			return c.Run(context.Background(), &tools.Env{In: in, Out: out, Err: out}, []string{"-h"})
		}
	}

	if len(args) > 0 {
		return fmt.Errorf("no help for %q; gateway help lists the commands", args)
	}

	fmt.Fprintln(out, "gateway                 serve; gateway -h lists its flags")
	listCommands(out)
	return nil
}

// listCommands lists the commands with their arguments.
func listCommands(out io.Writer) {
	for _, c := range tools.Commands() {
		fmt.Fprintf(out, "gateway %s %s\n    %s\n", c.Name, c.Arguments, c.Purpose)
	}
	fmt.Fprintln(out, "gateway dump\n    explain row keys and cells, JSON lines on standard input")
	fmt.Fprintln(out, "gateway version\n    print the version")
	fmt.Fprintln(out, "gateway help COMMAND\n    explain a command")
}

// runTool runs one of the tools with the gateway's settings, until it ends or a signal
// ends it.
func runTool(c tools.Command, args []string, in io.Reader, out, errs io.Writer) error {
	// The gateway logs at start which keys of an opentsdb.conf it does not honour.
	// A tool does not repeat that: it would stand among the tool's output.
	environ := environment()
	environ["DOWNPOUR_INSECURE"] = "true" // a tool listens nowhere, so no address exposes it
	cfg, _, err := configure(environ)
	if err != nil {
		return err
	}
	s, err := toolSettings(cfg)
	if err != nil {
		return err
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	e := &tools.Env{
		Settings:    s,
		In:          in,
		Out:         out,
		Err:         errs,
		Terminal:    terminal(errs),
		TerminalOut: terminal(out),
		Log:         cfg.Logger(errs),
		User:        user(),
	}
	log := slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	e.Open = func(create bool) (tools.Store, error) { return openStore(ctx, cfg, create, log) }
	e.Backups = func(address string) tools.Backups {
		return open.Backups{Address: address, Config: open.Config{Schema: cfg.Schema(), Log: log}}
	}
	e.Check = func(ctx context.Context, done func(tables, of int)) (store.CheckReport, error) {
		return open.Check(ctx, cfg.Store, open.Config{Schema: cfg.Schema(), Log: log}, done)
	}

	return c.Run(ctx, e, args)
}

// openStore opens the store. An embedded one that does not exist is made only if
// create is set: for a tool that reads, a directory without a store means that
// DOWNPOUR_STORE is misspelt.
func openStore(ctx context.Context, cfg *gateway.Config, create bool, log *slog.Logger) (tools.Store, error) {
	if dir, embedded := strings.CutPrefix(cfg.Store, "pebble:"); embedded && !create {
		if _, err := os.Stat(dir); err != nil {
			return nil, fmt.Errorf("DOWNPOUR_STORE=%s: %w", cfg.Store, err)
		}
	}
	return open.Start(ctx, cfg.Store, open.Config{
		Schema:            cfg.Schema(),
		Log:               log,
		Security:          open.Security(cfg.HBaseSecurity),
		ProofByTimestamps: cfg.ProofByTimestamps(),
	})
}

// user returns the name of the user whose process this is, or the number of one that has no name.
func user() string {
	number := strconv.Itoa(os.Getuid())
	if u, err := osuser.LookupId(number); err == nil {
		return u.Username
	}
	return number
}

// terminal reports whether somebody reads what is written to w: a file is no terminal, and /dev/null, a device of the
// same kind, is none either.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// toolSettings are the parts of the settings that tools need.
func toolSettings(cfg *gateway.Config) (s tools.Settings, err error) {
	if s, err = tools.ForConfig(cfg); err != nil {
		return s, err
	}
	s.Gateway = probe.URL(cfg.Listen, cfg.TLSCert != "") // Validate has reported an address that is none
	if s.Tokens, err = tokens(cfg.TokenFile); err != nil {
		return s, err
	}
	s.TLS, err = cfg.ClientTLS()
	return s, err
}

// tokens returns the first token of each scope in a token file. The tools show
// them to the gateway, which reads the same file.
func tokens(path string) (t tools.Tokens, err error) {
	of, err := auth.FirstOfEach(path)
	if err != nil {
		return t, fmt.Errorf("DOWNPOUR_TOKEN_FILE: %w", err)
	}
	return tools.Tokens{Read: of[auth.Read], Write: of[auth.Write], Admin: of[auth.All]}, nil
}
