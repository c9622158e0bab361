package peer

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"downpour/bench/report"
	"downpour/integration/e2e"
)

// holding are the functions that a profile of memory names: our own, and those of
// libraries that hold memory for themselves. What others allocate is counted to the
// innermost of them that called it.
var holding = regexp.MustCompile(`^downpour/|gohbase|cockroachdb|net/http\.`)

// Heap is a profile of what a server held at one moment.
type Heap []byte

// Heap collects the server's garbage and takes a profile of what is left. The
// server must be one of ours, with DOWNPOUR_PROFILING. Source: package
// runtime/pprof, profile "heap".
func (s *Server) Heap(ctx context.Context) (Heap, error) {
	var taken bytes.Buffer
	err := s.fetchProfile(ctx, "heap?gc=1", &taken)
	return taken.Bytes(), err
}

// Held is how much of what its functions have made a server held, and the bytes of
// all of it; about, for one allocation in 512 KiB is looked at.
func (h Heap) Held() (all []report.Share, sum int64, err error) {
	functions, sum, err := innermost(h, "inuse_space", holding)
	for _, f := range functions {
		all = append(all, report.Share{Name: f.name, Bytes: f.sum})
	}
	return all, sum, err
}

// Resident returns the server's resident memory and what it consists of. The
// server must be one of ours, with DOWNPOUR_PROFILING. Source: runtime.MemStats.
func (s *Server) Resident(ctx context.Context) (sum int64, parts []report.Share, err error) {
	memory, err := s.Process.Memory()
	if err != nil {
		return 0, nil, err
	}
	var text bytes.Buffer
	if err := s.fetchProfile(ctx, "heap?debug=1", &text); err != nil {
		return 0, nil, err
	}

	parts, err = residentParts(memory, text.String())
	return memory.Resident, parts, err
}

// residentParts divides resident memory by what the runtime says of itself, lines
// such as "# HeapInuse = 8192" behind a profile. The rest is memory that C's
// malloc gave out: that of the embedded store, and what it holds free.
func residentParts(memory e2e.Memory, stats string) ([]report.Share, error) {
	value := map[string]int64{}
	for _, name := range []string{"Sys", "HeapSys", "HeapInuse", "HeapReleased"} {
		_, rest, _ := strings.Cut(stats, "\n# "+name+" = ")
		line, _, _ := strings.Cut(rest, "\n")
		n, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("memory statistics: %s: got %.50q, want a number", name, line)
		}
		value[name] = n
	}

	idle := value["HeapSys"] - value["HeapInuse"] - value["HeapReleased"]
	other := value["Sys"] - value["HeapSys"]
	// The two are read one after the other, so the rest may come out below nothing.
	rest := memory.Resident - memory.File - value["HeapInuse"] - idle - other
	return []report.Share{
		{Name: "Go's heap in use, garbage included", Bytes: value["HeapInuse"]},
		{Name: "Go's heap kept for use", Bytes: idle},
		{Name: "Go's stacks and tables", Bytes: other},
		{Name: "C's memory, of the embedded store", Bytes: max(0, rest)},
		{Name: "the program", Bytes: memory.File},
	}, nil
}
