package tools

import (
	"bytes"
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
func runDashboard(ctx context.Context, c *call) error {
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

	return c.at(ctx, existing, func(r *remote) error {
		at := dashboards{r}
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
	})
}

// putDashboard checks a document before it opens the store.
func (c *call) putDashboard(ctx context.Context) error {
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

	return c.at(ctx, creating, func(r *remote) error {
		at := dashboards{r}
		if c.replace == "any" {
			if _, from, err = at.get(ctx, name, 0); err != nil && !errors.Is(err, dashboard.ErrNotFound) {
				return err
			}
		}
		version, err := at.put(ctx, name, from, document, c.dryRun)
		if err == nil {
			fmt.Fprintf(c.Out, "%s: version %d\n", name, version)
		}
		return err
	})
}

// dashboards are those of a store.
type dashboards struct{ *remote }

func (r dashboards) list(ctx context.Context) (names []string, err error) {
	var answer struct{ Dashboards []dashboard.Listed }
	err = r.call(ctx, http.MethodGet, dashboardsPath, nil, &answer)
	for _, d := range answer.Dashboards {
		names = append(names, d.Name)
	}
	return names, err
}

func (r dashboards) get(ctx context.Context, name string, number int64) ([]byte, int64, error) {
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
		return nil, 0, r.failed(resp.StatusCode, body)
	}
	version, err := strconv.ParseInt(strings.Trim(resp.Header.Get("ETag"), `"`), 10, 64)
	if err != nil {
		return nil, 0, fmt.Errorf("%s%s: ETag: %w", r.url, path, err)
	}
	return body, version, nil
}

func (r dashboards) put(ctx context.Context, name string, from int64, document []byte, dryRun bool) (int64, error) {
	path := dashboardsPath + "/" + name
	if dryRun {
		path += "?dryRun=true"
	}
	header := []string{"If-None-Match", "*"}
	if from > 0 {
		header = []string{"If-Match", strconv.Quote(strconv.FormatInt(from, 10))}
	}
	resp, err := r.send(ctx, http.MethodPut, path, bytes.NewReader(document), header...)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = r.failed(resp.StatusCode, body)
	}
	if err != nil {
		return 0, err
	}
	var saved dashboard.Listed
	err = json.Unmarshal(body, &saved)
	return saved.Version.Version, err
}
