//go:build grafana

// Command dashboardcheck reads a dashboard for Grafana with Grafana's own types, those of its
// Foundation SDK, which are made from the schemas of dashboards and of the plugins that come with
// Grafana: panels with their options, and queries. It refuses a field that they do not know, one
// that they want and that is not there, and a value of another type, and prints the expression of
// each query, a line each.
//
//	go run -modfile=integration/setup/grafana.mod -tags grafana ./integration/dashboardcheck FILE
//
// The SDK is a dependency of this command alone, so it has a go.mod and a build tag of its own.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "dashboardcheck:", err)
		os.Exit(1)
	}
}

// run checks the file that the only argument names.
func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("got %d arguments, want the file of a dashboard", len(args))
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}

	// Without them options and queries are taken as they come.
	plugins.RegisterDefaultPlugins()
	// The strict reader returns a list of faults that is no nil error when it is empty, and keeps no
	// panels, so the dashboard is read once more.
	var faults cog.BuildErrors
	if err := new(dashboard.Dashboard).UnmarshalJSONStrict(text); err != nil &&
		(!errors.As(err, &faults) || len(faults) > 0) {
		return err
	}
	var d dashboard.Dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		return err
	}
	if err := d.Validate(); err != nil {
		return err
	}
	return expressions(&d, out)
}

// expressions prints the queries of all panels. There are only such for Prometheus.
func expressions(d *dashboard.Dashboard, out io.Writer) error {
	for _, p := range d.Panels {
		if p.Panel == nil {
			return errors.New("panels: got a row, want panels alone")
		}
		title := ""
		if p.Panel.Title != nil {
			title = *p.Panel.Title
		}
		// Options of a plugin that the SDK does not know are taken as they come.
		if _, unknown := p.Panel.Options.(map[string]any); unknown {
			return fmt.Errorf("panel %q: type: got %q, want a plugin that comes with Grafana", title, p.Panel.Type)
		}
		for i, target := range p.Panel.Targets {
			q, ok := target.(*prometheus.Dataquery)
			if !ok || q.Datasource == nil || q.Datasource.Type == nil || *q.Datasource.Type != "prometheus" {
				return fmt.Errorf("panel %q: query %d is a %T, want one for a data source of the type prometheus",
					title, i, target)
			}
			fmt.Fprintln(out, q.Expr)
		}
	}
	return nil
}
