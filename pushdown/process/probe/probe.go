// Package probe checks whether a program of ours is alive or ready, for places that can run only
// the program itself: a container has no curl.
package probe

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// The paths that can be requested.
const (
	Health = "/healthz" // the process lives
	Ready  = "/readyz"  // it would accept puts and queries, or parts
)

// timeout bounds a request. Ready may wait for the store for 2 s before it answers 503.
const timeout = 5 * time.Second

// URL returns where a program that listens on HOST:PORT is reached from its own machine, ""
// if listen is no address.
func URL(listen string, secure bool) string {
	scheme := "http"
	if secure {
		scheme = "https"
	}

	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return ""
	}
	// Every address is where it listens, and none to connect to.
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// Ask requests a path of the program at url, see URL, and returns an error unless the answer is
// 200. The certificate is not verified: it has the host's public name, no secret is sent, and only
// the status is used.
func Ask(ctx context.Context, url, path string) error {
	if path != Health && path != Ready {
		return fmt.Errorf("probe: got %q, want %s or %s", path, Health, Ready)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}

	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("probe: %s%s: %w", url, path, err)
	}
	defer answer.Body.Close()

	if answer.StatusCode == http.StatusOK {
		return nil
	}
	why, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10)) // the status suffices
	return fmt.Errorf("probe: %s%s answers %s: %s", url, path, answer.Status, strings.TrimSpace(string(why)))
}
