package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
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
	var taken bytes.Buffer
	if err := s.fetchProfile(ctx, fmt.Sprintf("profile?seconds=%d", seconds), &taken); err != nil {
		return nil, err
	}
	text, err := top(ctx, taken.Bytes(), "-unit=us", "-show="+shown)
	if err != nil {
		return nil, err
	}
	return parseTop(text, func(flat string, s *report.Share) (err error) {
		s.Took, err = time.ParseDuration(flat)
		return err
	})
}

// top is what go tool pprof -top writes of a profile.
func top(ctx context.Context, taken []byte, args ...string) (string, error) {
	file, err := os.CreateTemp("", "profile-")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())

	_, err = file.Write(taken)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", err
	}
	var text, fault bytes.Buffer
	args = append([]string{"tool", "pprof", "-top", fmt.Sprintf("-nodecount=%d", functions)}, args...)
	c := exec.CommandContext(ctx, "go", append(args, file.Name())...)
	c.Stdout, c.Stderr = &text, &fault
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("go tool pprof: %w: %s", err, bytes.TrimSpace(fault.Bytes()))
	}
	return text.String(), nil
}

// fetchProfile gets one of the profiles at /debug/pprof/.
func (s *Server) fetchProfile(ctx context.Context, name string, to io.Writer) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: profile: %w", s.Name, err)
		}
	}()

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/debug/pprof/"+name, nil)
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
	_, err = io.Copy(to, resp.Body)
	return err
}

// parseTop reads what go tool pprof -top writes, behind its head a line for
// each function:
//
//	 flat  flat%   sum%        cum   cum%
//	900us 28.12% 28.12%     1200us 37.50%  downpour/encoding.Decode
//
// flat is what the function took itself, cum with all that it called; read puts
// flat into a share.
func parseTop(text string, read func(flat string, to *report.Share) error) (all []report.Share, err error) {
	_, table, found := strings.Cut(text, "flat%")
	if !found {
		return nil, fmt.Errorf("go tool pprof: got %.200q, want a table with a column flat%%", text)
	}
	_, table, _ = strings.Cut(table, "\n")
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		// Functions that took nothing themselves only called others.
		if len(words) < 6 || words[0] == "0" {
			continue
		}
		share := report.Share{Name: shapes.ReplaceAllString(strings.Join(words[5:], " "), "[…]")}
		if err := read(words[0], &share); err != nil {
			return nil, fmt.Errorf("go tool pprof: line %q: flat: %w", strings.TrimSpace(line), err)
		}
		all = append(all, share)
	}
	return all, nil
}

// shapes are the type arguments in the name of a generic function.
var shapes = regexp.MustCompile(`\[.*\]`)
