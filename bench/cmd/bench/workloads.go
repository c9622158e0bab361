package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/progress"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/gateway/write"
	"downpour/pushdown/rpc/auth"
)

// generate is bench generate: a data set as text, to a file or standard output.
func generate(ctx context.Context, s *session) error {
	d := dataFlags(s.flags)
	format := s.flags.String("format", "telnet", "telnet, import or json")
	path := s.flags.String("o", "-", "file, - for standard output")
	if err := s.parse(0); err != nil {
		return err
	}

	// String and Points, which are called before any point is made, divide by its numbers.
	if err := d.Validate(); err != nil {
		return err
	}
	if !slices.Contains(workload.Formats, workload.Format(*format)) {
		return fmt.Errorf("format: got %q, want telnet, import or json", *format)
	}
	var out io.Writer = s.out
	if *path != "-" {
		f, err := os.Create(*path)
		if err != nil {
			return err
		}
		defer f.Close()
		out = f
	}

	p := progress.New(s.errs, "generate, points", int64(d.Points()))
	n, err := bench.Generate(ctx, *d, workload.Format(*format), out, p)
	p.End()
	if err == nil {
		fmt.Fprintf(s.errs, "%s; %d bytes\n", d, n)
	}

	return err
}

var forms = map[string]write.Form{"cells": write.Single, "compacted": write.MultiPoint, "appended": write.Appended}

// form is the form of rows that a flag names; by default the one that a store
// usually has.
func form(name, address string) (write.Form, error) {
	if name == "" {
		name = "compacted"
		if strings.HasPrefix(address, "pebble:") {
			name = "appended"
		}
	}

	f, ok := forms[name]
	if !ok {
		return 0, fmt.Errorf("form: got %q, want cells, compacted or appended", name)
	}
	return f, nil
}

// load is bench load: a data set put to a server, or straight into a store.
func load(ctx context.Context, s *session) error {
	s.saveFlag()
	d := dataFlags(s.flags)
	door := s.flags.String("door", "telnet", "telnet, http, or direct: rows straight into the store")
	into := s.flags.String("into", "downpour",
		"downpour or victoria, started on new storage for this run; or the URL of a server with OpenTSDB's doors")
	address := s.flags.String("store", "", "direct: "+storeHelp)
	formName := s.flags.String("form", "",
		"direct: cells, compacted or appended; empty is appended embedded, compacted on HBase")
	connections := s.flags.Int("connections", 2, "connections side by side")
	batch := s.flags.Int("batch", 1000, "points of one write or request")
	if err := s.parse(0); err != nil {
		return err
	}

	if err := d.Validate(); err != nil { // the description of the data divides by its step
		return err
	}
	r := s.report()
	r.Data = d.String()
	p := progress.New(s.errs, "load, points", int64(d.Points()))
	defer p.End()

	figure := report.Figure{Name: "load, " + *door, Work: int64(d.Points()), Unit: "points"}
	var took time.Duration
	var err error
	switch *door {
	case "direct":
		took, err = s.loadRows(ctx, *d, *address, *formName, r, p)
	case "telnet", "http":
		format := map[string]workload.Format{"telnet": workload.Telnet, "http": workload.JSON}[*door]
		took, err = s.loadDoor(ctx, *into,
			bench.SendConfig{Data: *d, Format: format, Connections: *connections, Batch: *batch, Progress: p}, r)
	default:
		return fmt.Errorf("door: got %q, want telnet, http or direct", *door)
	}
	if err != nil {
		return err
	}

	figure.Runs = append(figure.Runs, took)
	r.Figures = append(r.Figures, figure)
	p.End() // the report is printed where the bar was
	return s.finish(r, nil)
}

// loadRows writes the data set straight into the store at an address.
func (s *session) loadRows(
	ctx context.Context, d workload.Devops, address, formName string, r *report.Report, p *progress.Progress,
) (time.Duration, error) {
	on, err := s.use(ctx, address, r)
	if err != nil {
		return 0, err
	}
	defer on.close()

	f, err := form(formName, on.address)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	err = bench.Fill(ctx, on.store, encoding.DefaultSchema(), "tsdb", d, f, p)
	return time.Since(start), err
}

// loadDoor puts the data set to a server by telnet or HTTP.
func (s *session) loadDoor(
	ctx context.Context, into string, c bench.SendConfig, r *report.Report,
) (time.Duration, error) {
	server, err := s.server(ctx, into)
	if err != nil {
		return 0, err
	}
	defer server.Close()
	r.AddPeer(server.Peer)
	c.Server = server
	return c.Send(ctx, c.Stream())
}

// server starts the system of a name on new storage, or takes one that runs.
func (s *session) server(ctx context.Context, name string) (*peer.Server, error) {
	switch {
	case name == "downpour":
		return peer.StartDownpour(ctx, peer.Options{})
	case name == "victoria":
		if err := s.setUp(ctx, "victoria_metrics"); err != nil {
			return nil, err
		}
		return peer.StartVictoria(ctx)
	case strings.HasPrefix(name, "http://"), strings.HasPrefix(name, "https://"):
		return peer.At(name, name), nil
	}
	return nil, fmt.Errorf("got the server %q, want downpour, victoria or a URL", name)
}

// scan is bench scan: large queries in this process against the bare scan.
func scan(ctx context.Context, s *session) error {
	s.saveFlag()
	d := dataFlags(s.flags)
	address := s.flags.String("store", "", storeHelp)
	formName := s.flags.String("form", "",
		"cells, compacted or appended; empty is appended embedded, compacted on HBase")
	batch := s.flags.Int("batch", 60, "points of a row that are appended at a time")
	queries := s.flags.String("queries", strings.Join(bench.Queries, " "),
		"queries as of the m parameter, %s for the metric, separated by blanks")
	salt := s.flags.Int("salt", 0, "salt width")
	rounds := s.flags.Int("rounds", 9, "measured rounds")
	scanners := s.flags.Int("scanners", 1, "scanners of the bare scan")
	noLoad := s.flags.Bool("no-load", false, "the store holds the data set already")
	if err := s.parse(0); err != nil {
		return err
	}

	if err := d.Validate(); err != nil { // the description of the data divides by its step
		return err
	}
	r := s.report()
	on, err := s.use(ctx, *address, r)
	if err != nil {
		return err
	}
	defer on.close()

	f, err := form(*formName, on.address)
	if err != nil {
		return err
	}
	schema := encoding.DefaultSchema()
	schema.SaltWidth = *salt
	p := progress.New(s.errs, "load, points", int64(d.Points()))
	err = bench.Scan(ctx, bench.ScanConfig{
		Store:    on.store,
		Schema:   schema,
		Data:     *d,
		Form:     f,
		Batch:    *batch,
		Load:     !*noLoad,
		Queries:  strings.Fields(*queries),
		Rounds:   *rounds,
		Scanners: *scanners,
		Settle:   on.settle,
		Progress: p,
	}, r)
	p.End()
	return s.finish(r, err)
}

// replay is bench replay: recorded or generated queries to a server.
func replay(ctx context.Context, s *session) error {
	s.saveFlag()
	d := dataFlags(s.flags)
	url := s.flags.String("url", "", "server to ask; empty starts Downpour on new storage and loads the data set")
	tokens := s.flags.String("token-file", "",
		"file of tokens, as of DOWNPOUR_TOKEN_FILE; its first one for reading is sent")
	file := s.flags.String("queries", "",
		"file of requests, /api/query?… or the body of a POST a line; empty generates a mix over the data set")
	record := s.flags.String("record", "",
		"write such a file of what -url was asked last, by its query log, and ask nothing")
	slack := s.flags.Int64("slack", 3600, "seconds by which the times of recorded requests vary")
	c := bench.ReplayConfig{Count: true}
	s.flags.Float64Var(&c.Rate, "rate", 0,
		"requests a second whatever the answers take (open loop); 0 asks again when answered (closed loop)")
	s.flags.IntVar(&c.Burst, "burst", 1, "requests that are due together")
	s.flags.IntVar(&c.Clients, "clients", 0, "requests under way at most; 0 is 1 in a closed loop, 64 in an open one")
	s.flags.IntVar(&c.Requests, "requests", 0, "requests; 0 is no bound")
	s.flags.DurationVar(&c.Duration, "duration", 10*time.Second, "length of the run; 0 is no bound")
	if err := s.parse(0); err != nil {
		return err
	}

	if *record != "" {
		return recordLog(ctx, s, *url, *tokens, *record)
	}
	if err := d.Validate(); err != nil { // the description of the data divides by its step
		return err
	}
	r := s.report()
	r.Data, r.Cache = d.String(), "as the server has them; the times of queries vary"
	c.Seed, c.Queries = d.Seed, d.Mixed(d.Seed)
	if *file != "" {
		queries, err := recorded(*file)
		if err != nil {
			return err
		}
		r.Data, c.Queries = fmt.Sprintf("%d requests of %s", len(queries), *file), varied(queries, *slack, d.Seed)
	}

	var err error
	if c.Server, err = s.replayServer(ctx, *url, *d, r); err != nil {
		return err
	}
	defer c.Server.Close()
	if c.Server.Token, err = readToken(*tokens); err != nil {
		return err
	}

	r.AddPeer(c.Server.Peer)
	c.Progress = progress.New(s.errs, "replay, requests", int64(c.Requests))
	l, err := bench.Replay(ctx, c)
	c.Progress.End()
	if l.Requests > 0 {
		r.Latencies = append(r.Latencies, l)
	}

	return s.finish(r, err)
}

// recordLog is bench replay -record: a file of what the server at a URL was asked.
func recordLog(ctx context.Context, s *session, url, tokens, path string) error {
	if err := refused(s.flags, ofReplay, "says how to ask; want -record with -url and -token-file alone"); err != nil {
		return err
	}
	if url == "" {
		return errors.New("record: got no -url, want that of the server whose queries are recorded")
	}
	server, err := s.server(ctx, url)
	if err != nil {
		return err
	}
	defer server.Close()
	if server.Token, err = readToken(tokens); err != nil {
		return err
	}
	log, err := server.Ask(ctx, workload.Query{Path: workload.LogPath})
	if err != nil {
		return err
	}
	queries, left, err := workload.Record(log)
	if err != nil {
		return fmt.Errorf("record: %s: %w", url, err)
	}
	leftOut := ""
	if text := left.String(); text != "" {
		leftOut = "; left out: " + text
	}
	if len(queries) == 0 {
		return fmt.Errorf("record: %s: its log has no query that can be sent again%s", url, leftOut)
	}

	var lines strings.Builder
	distinct := map[string]bool{}
	for _, q := range queries {
		lines.WriteString(q.Line() + "\n")
		distinct[q.Line()] = true
	}
	what := fmt.Sprintf("%d requests, %d of them different, that %s was asked%s",
		len(queries), len(distinct), url, leftOut)
	if err := os.WriteFile(path, []byte("# "+what+"\n"+lines.String()), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s: %s\n", path, what)
	return nil
}

// readToken returns the token for reading of a token file, "" without a file.
func readToken(path string) (string, error) {
	tokens, err := auth.FirstOfEach(path)
	if err != nil {
		return "", fmt.Errorf("token-file: %w", err)
	}
	token := cmp.Or(tokens[auth.Read], tokens[auth.All])
	if path != "" && token == "" {
		return "", fmt.Errorf("token-file: %s: has no token for reading", path)
	}
	return token, nil
}

// replayServer returns the server at a URL, or starts one that holds the data set.
func (s *session) replayServer(
	ctx context.Context, url string, d workload.Devops, r *report.Report,
) (*peer.Server, error) {
	if url != "" {
		return s.server(ctx, url)
	}
	server, err := peer.StartDownpour(ctx, peer.Options{})
	if err != nil {
		return nil, err
	}

	p := progress.New(s.errs, "load, points", int64(d.Points()))
	defer p.End()
	c := bench.SendConfig{Server: server, Data: d, Format: workload.Telnet, Progress: p}
	if _, err := c.Send(ctx, c.Stream()); err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return server, nil
}

// varied asks recorded requests again and again, each time at other times.
func varied(queries []workload.Query, slack int64, seed uint64) iter.Seq[workload.Query] {
	return func(yield func(workload.Query) bool) {
		for round := uint64(0); ; round++ {
			for i, q := range queries {
				for v := range q.Vary(slack, 1, seed+round*1000+uint64(i)) {
					if !yield(v) {
						return
					}
					break
				}
			}
		}
	}
}
