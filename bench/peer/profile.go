package peer

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/google/pprof/profile"

	"downpour/bench/report"
)

// shown are the functions that a profile names. What the runtime, the system and
// small packages of Go's library do is counted to the innermost of them that
// called it; collecting garbage nobody calls.
var shown = regexp.MustCompile(`^downpour/|gohbase|cockroachdb|apache/arrow|net/http\.|^bufio|internal/poll|` +
	`compress|runtime\.gcBgMarkWorker$|runtime\.bgsweep|runtime\.schedule$`)

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
	all, _, err := innermost(taken.Bytes(), "cpu", shown)
	shares := make([]report.Share, len(all))
	for i, f := range all {
		shares[i] = report.Share{Name: f.name, Took: time.Duration(f.sum)}
	}
	return shares, err
}

// weighed is a function with what a profile counts to it, in the unit of the profile.
type weighed struct {
	name string
	sum  int64
}

// innermost counts each sample of a profile to the innermost of the functions that names matches,
// and returns the functions with the largest sums, and the sum of all samples. kind is what is
// added up: "cpu" in nanoseconds, "inuse_space" in bytes.
func innermost(taken []byte, kind string, names *regexp.Regexp) (all []weighed, total int64, err error) {
	p, err := profile.ParseData(taken)
	if err != nil {
		return nil, 0, fmt.Errorf("profile: %w", err)
	}
	i, err := p.SampleIndexByName(kind)
	if err != nil {
		return nil, 0, fmt.Errorf("profile: %w", err)
	}
	for _, s := range p.Sample {
		total += s.Value[i]
	}

	p.FilterSamplesByName(nil, nil, nil, names)
	sums := map[string]int64{}
	for _, s := range p.Sample {
		if name := shapes.ReplaceAllString(s.Location[0].Line[0].Function.Name, "[…]"); s.Value[i] != 0 {
			sums[name] += s.Value[i]
		}
	}
	for name, sum := range sums {
		all = append(all, weighed{name, sum})
	}
	slices.SortFunc(all, func(a, b weighed) int {
		return cmp.Or(cmp.Compare(b.sum, a.sum), cmp.Compare(a.name, b.name))
	})
	return all[:min(len(all), functions)], total, nil
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

// shapes are the type arguments in the name of a generic function.
var shapes = regexp.MustCompile(`\[.*\]`)
