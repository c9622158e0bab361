package peer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"downpour/bench/report"
)

// shown are the functions that a profile names. What the runtime, the system and
// small packages of Go's library do is counted to the innermost of them that
// called it; collecting garbage nobody calls.
const shown = `^downpour/|gohbase|cockroachdb|apache/arrow|net/http\.|^bufio|internal/poll|compress|runtime\.gcBgMarkWorker$|runtime\.bgsweep|runtime\.schedule$`

// functions is how many of them are kept.
const functions = 14

// Profile takes a profile of the processor for so many seconds and returns what
// the functions of the server took of it. The server must be one of ours, with
// DOWNPOUR_PROFILING. Source: package net/http/pprof.
func (s *Server) Profile(ctx context.Context, seconds int) ([]report.Share, error) {
	file, err := os.CreateTemp("", "profile-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	err = s.fetchProfile(ctx, seconds, file)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("%s: profile: %w", s.Name, err)
	}
	var text, fault bytes.Buffer
	c := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-unit=us", fmt.Sprintf("-nodecount=%d", functions), "-show="+shown, file.Name())
	c.Stdout, c.Stderr = &text, &fault
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("go tool pprof: %w: %s", err, bytes.TrimSpace(fault.Bytes()))
	}
	return parseTop(text.String())
}

func (s *Server) fetchProfile(ctx context.Context, seconds int, to *os.File) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", s.URL, seconds), nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return s.fault(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d, want 200: does it run with DOWNPOUR_PROFILING=true?", resp.StatusCode)
	}
	_, err = bufio.NewReader(resp.Body).WriteTo(to)
	return err
}

// parseTop reads what go tool pprof -top writes, behind its head a line for
// each function:
//
//	 flat  flat%   sum%        cum   cum%
//	900us 28.12% 28.12%     1200us 37.50%  downpour/encoding.Decode
//
// flat is what the function took itself, cum with all that it called.
func parseTop(text string) (all []report.Share, err error) {
	_, table, found := strings.Cut(text, "flat%")
	if !found {
		return nil, fmt.Errorf("go tool pprof: got %.200q, want a table with a column flat%%", text)
	}
	_, table, _ = strings.Cut(table, "\n")
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if len(words) < 6 {
			continue
		}
		flat := words[0]
		if flat == "0" {
			continue // only on the way to others
		}
		took, err := time.ParseDuration(flat)
		if err != nil {
			return nil, fmt.Errorf("go tool pprof: line %q: flat: %w", strings.TrimSpace(line), err)
		}
		all = append(all, report.Share{Name: strings.Join(words[5:], " "), Took: took})
	}
	return all, nil
}
