// Command bench measures Downpour against OpenTSDB, VictoriaMetrics and the bare
// scan of the same rows. See package bench for the workloads; bench WORKLOAD
// -help lists the flags of one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"downpour/bench/report"
)

// command is one workload as the command line has it.
type command struct {
	name, purpose string
	run           func(context.Context, *session) error
}

// commands returns the workloads in the order of the usage text.
func commands() []command {
	return []command{
		{"compare", "the table of aims: Downpour, OpenTSDB, VictoriaMetrics and the bare scan side by side; " +
			"or two builds or servers, -a and -b", compare},
		{"generate", "write a data set as text", generate},
		{"load", "put a data set into a server by telnet or HTTP, or straight as rows into a store", load},
		{"scan", "large queries in this process beside the bare scan of the same rows", scan},
		{"replay", "recorded or generated queries to a server, closed or open loop", replay},
		{"live", "live queries: put to frame, many sockets, a tick against asking again; " +
			"the Arrow answer against JSON, the scan and the wire", liveQueries},
		{"scale", "how cost grows with points, series, groups and parts", scale},
		{"table", "the README's table of a report: bench table REPORT.json", table},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", firstLines(err))
		os.Exit(1)
	}
}

// firstLines is an error without what hangs below its lines, such as the end of
// a server's log: one clear line for each thing that went wrong.
func firstLines(err error) string {
	// Joined errors under a text of their own are one thing that went wrong.
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) && fmt.Sprint(joined) == err.Error() {
		var lines []string
		for _, e := range joined.Unwrap() {
			lines = append(lines, firstLines(e))
		}
		return strings.Join(lines, "\n")
	}

	// An error of package e2e has the end of a log below it, under a line that names the file.
	first, rest, _ := strings.Cut(err.Error(), "\n")
	if i := strings.Index(rest, "-- end of "); i >= 0 {
		log, _, _ := strings.Cut(rest[i+len("-- end of "):], "\n")
		first += " (log: " + log + ")"
	}
	return first
}

// run runs the workload that the first argument names. Without one it writes the usage
// text.
func run(ctx context.Context, args []string, out, errs io.Writer) error {
	if len(args) > 0 {
		for _, c := range commands() {
			if c.name == args[0] {
				s := &session{args: args, out: out, errs: errs}
				s.flags = flag.NewFlagSet("bench "+c.name, flag.ContinueOnError)
				s.flags.SetOutput(errs)
				s.flags.Usage = func() {
					fmt.Fprintf(errs, "bench %s: %s\n", c.name, c.purpose)
					s.flags.PrintDefaults()
				}
				return c.run(ctx, s)
			}
		}
	}

	var b strings.Builder
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-9s %s\n", c.name, c.purpose)
	}

	if len(args) == 0 || strings.HasPrefix(args[0], "-h") || args[0] == "help" || args[0] == "--help" {
		fmt.Fprintf(out, "usage: bench WORKLOAD [flags]\n%s", &b)
		return flag.ErrHelp // which main takes for no failure
	}
	names := make([]string, 0, len(commands()))
	for _, c := range commands() {
		names = append(names, c.name)
	}

	return fmt.Errorf("no workload %q; there are %s", args[0], strings.Join(names, ", "))
}

// session is one run of the command.
type session struct {
	args      []string
	flags     *flag.FlagSet
	out, errs io.Writer
	results   string // directory of reports, "" for none
}

// parse reads the flags. A wrong one is one line, not a page of usage.
func (s *session) parse(operands int) error {
	// The flag package would print the usage at every error; here it is printed if requested.
	usage, output := s.flags.Usage, s.flags.Output()
	s.flags.Usage = func() {}
	s.flags.SetOutput(io.Discard)
	err := s.flags.Parse(s.args[1:])
	s.flags.SetOutput(output)
	switch {
	case errors.Is(err, flag.ErrHelp):
		usage()
		return err
	case err != nil:
		return fmt.Errorf("%s: %w (bench %s -help lists the flags)", s.args[0], err, s.args[0])
	case s.flags.NArg() != operands:
		return fmt.Errorf("%s: got %d operands %q, want %d", s.args[0], s.flags.NArg(), s.flags.Args(), operands)
	}
	return nil
}

// given reports whether the command line has a flag.
func (s *session) given(name string) (found bool) {
	s.flags.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// saveFlag adds the flag that says where reports go.
func (s *session) saveFlag() {
	s.flags.StringVar(&s.results, "results", "build/bench",
		"directory that the report goes to (a page, JSON, lines for benchstat); empty for none")
}

// report begins a report of this run.
func (s *session) report() *report.Report { return report.New(s.args[0], s.args) }

// finish prints the report and saves it.
func (s *session) finish(r *report.Report, err error) error {
	r.Done()
	if len(r.Figures)+len(r.Latencies)+len(r.Curves)+len(r.Aims)+len(r.Changes) > 0 {
		err = errors.Join(err, r.WriteText(s.out))
		path, saveErr := s.save(r)
		if err = errors.Join(err, saveErr); saveErr == nil && path != "" {
			fmt.Fprintln(s.out, "report:", path)
		}
	}
	return err
}

func (s *session) save(r *report.Report) (string, error) {
	if s.results == "" {
		return "", nil
	}
	return r.Save(s.results)
}
