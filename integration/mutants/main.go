// Command mutants plants faults into the sources, one at a time, and runs the
// test that must notice each:
//
//	go run ./integration/mutants             all of them
//	go run ./integration/mutants -sample 6   six, drawn by a seed that it prints
//	go run ./integration/mutants -only NAME  those whose name holds NAME
//	go run ./integration/mutants -list       their names, files and tests
//
// The sources themselves stay as they are: the go command is given a changed
// copy of one file (-overlay). A fault that no test notices, a place that is not
// found any more, and a named test that fails by itself are failures of the
// command.
//
// To add a fault, add an entry to one of the lists (list_*.go): a name, the file, a
// text that occurs in it exactly once, what to put there, and the test that must
// fail.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run reads the flags, tries the mutants that they choose, and returns an error if one was not caught.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	var (
		sample = flags.Int("sample", 0, "try only so many, drawn at random; 0 tries all")
		seed   = flags.Uint64("seed", 0, "seed of the sample; 0 draws one")
		only   = flags.String("only", "", "try only those whose name holds this")
		list   = flags.Bool("list", false, "list the faults and end")
		jobs   = flags.Int("jobs", max(1, runtime.GOMAXPROCS(0)), "how many to try at once")
	)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *list {
		for _, m := range mutants {
			fmt.Fprintf(out, "%-28s %s, caught by %s in %s\n", m.name, m.file, m.test, m.pkg())
		}
		return nil
	}
	chosen := named(*only)
	if *sample > 0 && *sample < len(chosen) {
		if *seed == 0 {
			*seed = rand.Uint64()
		}
		fmt.Fprintf(out, "seed %d\n", *seed)
		rng := rand.New(rand.NewPCG(*seed, 0))
		rng.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		chosen = chosen[:*sample]
	}
	began := time.Now()
	bad, err := (&lab{out: out, jobs: *jobs}).tryAll(ctx, chosen)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %d faults caught in %v\n", len(chosen)-bad, len(chosen), time.Since(began).Round(time.Second))
	if bad > 0 {
		return fmt.Errorf("%d faults were not caught", bad)
	}
	return nil
}

// named returns the faults whose name holds text.
func named(text string) (out []mutant) {
	for _, m := range mutants {
		if strings.Contains(m.name, text) {
			out = append(out, m)
		}
	}
	return out
}
