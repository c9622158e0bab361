package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Until calls ready every interval until it returns nil, or until ctx ends: then
// the error wraps ctx's cause and says the last thing that was not ready.
func Until(ctx context.Context, interval time.Duration, ready func(context.Context) error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var last error
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err // once ctx has ended, ready fails because of that: keep the reason before
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", context.Cause(ctx), last)
		case <-tick.C:
		}
	}
}

// UntilProcess is Until, ended early when the process exits: waiting for a
// server that has died only hides why.
func UntilProcess(ctx context.Context, p *Process, interval time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-p.Done():
			cancel(fmt.Errorf("%s exited: %w", p.Name, p.Err()))
		case <-ctx.Done():
		}
	}()
	if err := Until(ctx, interval, ready); err != nil {
		return fmt.Errorf("%s not ready: %w\n%s", p.Name, err, p.LogTail(20))
	}
	return nil
}

var anyCertificate = &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}

// answers returns an error unless a GET of url gives status 200. Any certificate will do: only the status is believed.
func answers(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("ready request: %w", err)
	}
	resp, err := anyCertificate.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return fmt.Errorf("GET %s: status %d: %s", url, resp.StatusCode, body)
	}
	return nil
}
