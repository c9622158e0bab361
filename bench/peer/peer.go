// Package peer runs the systems that are measured side by side, each a process
// on loopback with its version noted: Downpour's gateway, OpenTSDB,
// VictoriaMetrics. It asks them the same question, each in its own language, and
// finds the first difference between two answers.
package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/encoding/batch"
	"downpour/integration/e2e"
)

// Server is a running system.
type Server struct {
	report.Peer
	URL    string // queries, no slash at the end
	PutURL string // the same for POST /api/put
	Telnet string // host:port of telnet put, empty where there is none
	// Process is nil for a server that somebody else has started.
	Process *e2e.Process
	// Prometheus says that it speaks Prometheus's API and not OpenTSDB's.
	Prometheus bool
	// Dir holds its files.
	Dir string
	// Token is sent with each question; "" is none.
	Token string

	close func() error
}

// Close ends the server and removes its files.
func (s *Server) Close() error {
	if s == nil || s.close == nil {
		return nil
	}
	return s.close()
}

// At is a server with OpenTSDB's API that runs already.
func At(name, url string) *Server {
	url = strings.TrimSuffix(url, "/")
	_, address, _ := strings.Cut(url, "://")
	return &Server{Peer: report.Peer{Name: name, Version: "at " + url}, URL: url, PutURL: url, Telnet: address}
}

// Names of the systems in reports.
const (
	Downpour = "Downpour"
	OpenTSDB = "OpenTSDB"
	Victoria = "VictoriaMetrics"
	HBase    = "HBase"
)

// Options say which tables a server on HBase uses. Without Quorum, Downpour
// runs on an embedded store in its own directory, or in Dir.
type Options struct {
	Quorum string // ZooKeeper of the HBase
	Tables e2e.Tables
	Dir    string            // Downpour: directory whose data it takes over
	Env    map[string]string // Downpour: further settings
	TSD    map[string]string // OpenTSDB: further keys of opentsdb.conf
	Beside string            // pushdown server: address of the region server next to it
	// Program is what to start, and Name what reports call it; empty is
	// Downpour built from this tree.
	Program, Name string
}

// settings name the store and the tables of a program of ours.
func (o Options) settings() map[string]string {
	if o.Quorum == "" {
		return map[string]string{}
	}
	t := o.Tables
	return map[string]string{
		"DOWNPOUR_STORE": "hbase:" + o.Quorum, "DOWNPOUR_TABLE_DATA": t.Data, "DOWNPOUR_TABLE_UID": t.UID,
		"DOWNPOUR_TABLE_META": t.Meta, "DOWNPOUR_TABLE_TREE": t.Tree,
	}
}

// StartPushdown starts a pushdown server over tables of HBase. A gateway finds it at the program's Addr.
func StartPushdown(ctx context.Context, o Options) (*e2e.Program, error) {
	env := o.settings()
	if o.Beside != "" {
		env["DOWNPOUR_BESIDE"] = o.Beside
	}
	maps.Copy(env, o.Env)

	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	return e2e.StartPushdown(ctx, e2e.ProgramOptions{Path: o.Program, Env: env})
}

// StartDownpour starts the gateway. It collects no metrics of its own and makes
// metrics on put.
func StartDownpour(ctx context.Context, o Options) (*Server, error) {
	env := o.settings()
	maps.Copy(env, map[string]string{
		"DOWNPOUR_SELF_METRICS": "0", "DOWNPOUR_AUTO_METRICS": "true", "DOWNPOUR_QUERY_TIMEOUT": "5m",
		"DOWNPOUR_PROFILING": "true",
	})
	maps.Copy(env, o.Env)

	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	g, err := e2e.StartGateway(ctx, e2e.ProgramOptions{Path: o.Program, Env: env, Dir: o.Dir})
	if err != nil {
		return nil, err
	}

	known := report.Peer{Name: Downpour, Version: "of this commit"}
	if o.Program != "" {
		known = report.Peer{Name: o.Name, Version: o.Program}
	}
	return &Server{Peer: known, URL: g.URL, PutURL: g.URL, Telnet: g.Addr,
		Process: g.Process, Dir: g.Dir(), close: g.Close}, nil
}

// StartOpenTSDB starts a TSD that leaves rows as they are: reading would
// otherwise compact them between two rounds.
func StartOpenTSDB(ctx context.Context, o Options) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	config := map[string]string{"tsd.storage.enable_compaction": "false"}
	maps.Copy(config, o.TSD)
	t, err := e2e.StartOpenTSDB(ctx, e2e.OpenTSDBOptions{
		Quorum:  o.Quorum,
		Tables:  o.Tables,
		HeapMiB: 4096,
		Config:  config,
	})
	if err != nil {
		return nil, err
	}
	return &Server{Peer: report.Peer{Name: OpenTSDB, Version: e2e.Version("opentsdb")}, URL: t.URL,
		PutURL: t.URL, Telnet: t.Addr,
		Process: t.Process, close: t.Close}, nil
}

// StartVictoria starts VictoriaMetrics on storage of its own.
func StartVictoria(ctx context.Context) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	v, err := e2e.StartVictoriaMetrics(ctx)
	if err != nil {
		return nil, err
	}
	return &Server{
		Peer:       report.Peer{Name: Victoria, Version: v.Version},
		URL:        v.URL,
		PutURL:     v.PutURL,
		Telnet:     v.Telnet,
		Process:    v.Process,
		Prometheus: true,
		Dir:        v.Dir(),
		close:      v.Close,
	}, nil
}

// client keeps connections and asks for no compression, which would measure a
// codec.
var client = &http.Client{
	Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64, ReadBufferSize: 64 << 10},
}

// CloseIdle closes connections that nobody uses.
func CloseIdle() { client.CloseIdleConnections() }

// Ask asks a question and returns the answer whole; any status but 200 is an
// error.
func (s *Server) Ask(ctx context.Context, q workload.Query) ([]byte, error) {
	body, err := s.open(ctx, q)
	if err != nil {
		return nil, err
	}
	defer body.Close()

	text, err := io.ReadAll(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: reading the answer: %w", s.Name, spelled(q), err)
	}
	return text, nil
}

// Drain asks a question, reads the answer to its end and throws it away.
func (s *Server) Drain(ctx context.Context, q workload.Query) error {
	_, err := s.Copy(ctx, q, "", io.Discard)
	return err
}

// Copy asks a question in the form of a media type, "" for the one that the question wants, and writes the
// answer to w. It returns the bytes of the answer.
func (s *Server) Copy(ctx context.Context, q workload.Query, accept string, w io.Writer) (int64, error) {
	body, err := s.openAs(ctx, q, accept)
	if err != nil {
		return 0, err
	}
	defer body.Close()

	n, err := io.Copy(w, body)
	if err != nil {
		return n, fmt.Errorf("%s: %s: reading the answer: %w", s.Name, spelled(q), err)
	}
	return n, nil
}

// spelled is a question as errors show it.
func spelled(q workload.Query) string {
	if q.JSON != "" {
		return fmt.Sprintf("%s %.200s", q, q.JSON)
	}
	return q.String()
}

func (s *Server) open(ctx context.Context, q workload.Query) (io.ReadCloser, error) {
	return s.openAs(ctx, q, "")
}

// openAs asks for an answer of a media type, "" for the one that the question wants, and returns its body, which the
// caller closes. A Prometheus is asked in its own language.
func (s *Server) openAs(ctx context.Context, q workload.Query, accept string) (io.ReadCloser, error) {
	path := q.String()
	if s.Prometheus && q.PromQL == "" {
		var err error
		if path, err = prometheusPath(q); err != nil {
			return nil, err
		}
	}

	method := http.MethodGet
	if q.Body() != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(q.Body()))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	if accept == "" && q.Arrow {
		accept = batch.StreamMediaType
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	if s.Token != "" {
		req.Header.Set("Authorization", "Bearer "+s.Token)
	}

	resp, err := client.Do(req)
	if err != nil {
		return nil, s.fault(fmt.Errorf("%s: %w", s.Name, err))
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		resp.Body.Close()
		return nil, fmt.Errorf("%s: %s: status %d: %s",
			s.Name, spelled(q), resp.StatusCode, strings.Join(strings.Fields(string(text)), " "))
	}

	return resp.Body, nil
}

// fault says that a server has died, where it has: that is the reason for
// whatever error a client sees.
func (s *Server) fault(err error) error {
	if s.Process == nil { // somebody else's: nothing is known about it
		return err
	}
	if ended := s.Process.Err(); ended != nil {
		return errors.Join(fmt.Errorf("%s has ended (%w), see %s", s.Name, ended, s.Process.Log), err)
	}
	return err
}
