package tools

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"downpour/gateway/extra/dashboards/dashboard"
)

const dashboardsPath = "/api/dashboards"

func dashboardFlags(f *flag.FlagSet, o *options) {
	f.Int64Var(&o.version, "version", 0, "get: a version that is kept, instead of the one in force")
	f.StringVar(&o.replace, "replace", "", "put: the version in whose place the document comes, or any")
}

// runDashboard dispatches.
func runDashboard(ctx context.Context, c *call) (err error) {
	want := map[string]int{"list": 1, "get": 2, "put": 3}
	if len(c.args) == 0 || want[c.args[0]] != len(c.args) {
		return c.usage("got %d words, want list, get NAME or put NAME FILE", len(c.args))
	}
	if len(c.args) > 1 {
		if err := dashboard.CheckName(c.args[1]); err != nil {
			return err
		}
	}
	if c.args[0] == "put" {
		return c.putDashboard(ctx)
	}

	at, done, err := c.dashboards(ctx, existing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if c.args[0] == "list" {
		names, err := at.list(ctx)
		for _, name := range names {
			fmt.Fprintln(c.Out, name)
		}
		return err
	}

	document, version, err := at.get(ctx, c.args[1], c.version)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Err, "version %d\n", version)
	_, err = c.Out.Write(document)
	return err
}

// putDashboard checks a document before it opens the store.
func (c *call) putDashboard(ctx context.Context) (err error) {
	name, file := c.args[1], c.args[2]
	in := c.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	document, err := io.ReadAll(io.LimitReader(in, dashboard.MaxBytes+1))
	if err != nil {
		return err
	}
	if _, err := dashboard.Check(document); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	from := int64(0)
	if c.replace != "" && c.replace != "any" {
		if from, err = strconv.ParseInt(c.replace, 10, 64); err != nil || from < 1 {
			return c.usage("-replace: got %q, want a version, or any", c.replace)
		}
	}

	at, done, err := c.dashboards(ctx, creating)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if c.replace == "any" {
		if _, from, err = at.get(ctx, name, 0); err != nil && !errors.Is(err, dashboard.ErrNotFound) {
			return err
		}
	}
	if remote, ok := at.(remoteDashboards); ok && c.dryRun {
		at = dryDashboards{remote}
	}
	version, err := at.put(ctx, name, from, document)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "%s: version %d\n", name, version)
	return nil
}

// dashboards are those of a store, or of the gateway that has it open.
type dashboards interface {
	list(ctx context.Context) ([]string, error)
	get(ctx context.Context, name string, version int64) ([]byte, int64, error)
	put(ctx context.Context, name string, from int64, document []byte) (int64, error)
}

// dashboards connects; the caller calls done at the end.
func (c *call) dashboards(ctx context.Context, p purpose) (at dashboards, done func() error, err error) {
	conn, err := c.connect(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	if conn.store == nil {
		return remoteDashboards{conn.remote}, conn.close, nil
	}
	return storedDashboards{&dashboard.Store{Cells: conn.store, Table: c.Tables.State, Now: c.Now}}, conn.close, nil
}

type storedDashboards struct{ *dashboard.Store }

func (s storedDashboards) list(ctx context.Context) (names []string, err error) {
	all, err := s.List(ctx)
	for _, d := range all {
		names = append(names, d.Name)
	}
	return names, err
}

func (s storedDashboards) get(ctx context.Context, name string, number int64) ([]byte, int64, error) {
	document, v, err := s.Get(ctx, name, number)
	return document, v.Version, err
}

func (s storedDashboards) put(ctx context.Context, name string, from int64, document []byte) (int64, error) {
	v, err := s.Put(ctx, name, from, document, "")
	return v.Version, err
}

// dryDashboards are those of a gateway, to which nothing is sent.
type dryDashboards struct{ remoteDashboards }

func (d dryDashboards) put(ctx context.Context, name string, from int64, _ []byte) (int64, error) {
	_, now, err := d.get(ctx, name, 0)
	if err != nil && !errors.Is(err, dashboard.ErrNotFound) {
		return 0, err
	}
	if now != from {
		return 0, fmt.Errorf("dashboard %s: version %d is in force, 0 for none; this change is made from version %d", name, now, from)
	}
	return now + 1, nil
}

type remoteDashboards struct{ *remote }

func (r remoteDashboards) list(ctx context.Context) (names []string, err error) {
	var answer struct{ Dashboards []dashboard.Listed }
	err = r.call(ctx, http.MethodGet, dashboardsPath, nil, &answer)
	for _, d := range answer.Dashboards {
		names = append(names, d.Name)
	}
	return names, err
}

func (r remoteDashboards) get(ctx context.Context, name string, number int64) ([]byte, int64, error) {
	path := dashboardsPath + "/" + name
	if number > 0 {
		path += "?version=" + strconv.FormatInt(number, 10)
	}
	resp, err := r.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return nil, 0, err
	case resp.StatusCode == http.StatusNotFound:
		return nil, 0, fmt.Errorf("%w: %s", dashboard.ErrNotFound, errorMessage(body))
	case resp.StatusCode != http.StatusOK:
		return nil, 0, &answerError{r.url, resp.StatusCode, errorMessage(body)}
	}
	version, err := strconv.ParseInt(strings.Trim(resp.Header.Get("ETag"), `"`), 10, 64)
	if err != nil {
		return nil, 0, fmt.Errorf("%s%s: ETag: %w", r.url, path, err)
	}
	return body, version, nil
}

func (r remoteDashboards) put(ctx context.Context, name string, from int64, document []byte) (int64, error) {
	header := []string{"If-None-Match", "*"}
	if from > 0 {
		header = []string{"If-Match", strconv.Quote(strconv.FormatInt(from, 10))}
	}
	resp, err := r.send(ctx, http.MethodPut, dashboardsPath+"/"+name, strings.NewReader(string(document)), header...)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = &answerError{r.url, resp.StatusCode, errorMessage(body)}
	}
	if err != nil {
		return 0, err
	}
	var saved dashboard.Listed
	err = json.Unmarshal(body, &saved)
	return saved.Version.Version, err
}
