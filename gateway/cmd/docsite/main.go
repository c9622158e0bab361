// Command docsite writes the files of the documentation's site, as the gateway serves them at /docs, into a directory:
//
//	docsite DIR
//
// Tests of the page in Node.js read them there.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"downpour"
	"downpour/gateway/extra/docsite"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "docsite:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("got the arguments %q, want a directory", args)
	}
	files, err := docsite.Build(downpour.Pages)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(args[0], 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(args[0], name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
