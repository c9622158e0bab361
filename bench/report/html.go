package report

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"svg":          func(p Plot) template.HTML { return template.HTML(p.svg()) },
	"bars":         func(f []Figure) template.HTML { return template.HTML(bars(f)) },
	"distribution": distribution,
	"ms":           MS,
	"thousands":    Thousands,
	"of": func(r *Report, f Figure) string {
		if other, ok := r.Figure(f.Of); ok && f.Of != f.Name {
			return f.Over(other).String() + " " + f.Of
		}
		return ""
	},
	"at": func(list []PercentileMS, percent float64) string {
		for _, p := range list {
			if p.Percent == percent {
				return msText(p.MS)
			}
		}
		return ""
	},
}).Parse(pageText))

// WriteHTML writes one page that needs nothing else: pictures are drawn in it,
// and it asks no other server for anything.
func (r *Report) WriteHTML(w io.Writer) error { return page.Execute(w, r) }

// WriteJSON writes the report so that Read reads it again.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// Read reads a report that WriteJSON wrote.
func Read(path string) (*Report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(Report)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: no report: %w", path, err)
	}
	return r, nil
}

// Save writes DIR/DATE-WORKLOAD.html, .json and .txt (benchstat's lines) and
// returns the path of the page. Saving again replaces the files whole: a
// reader never sees half of one.
func (r *Report) Save(dir string) (path string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	base := filepath.Join(dir, r.Started.UTC().Format("2006-01-02T150405")+"-"+r.Workload)
	return base + ".html", errors.Join(
		replace(base+".html", r.WriteHTML), replace(base+".json", r.WriteJSON), replace(base+".txt", r.WriteBench))
}

// replace writes a new file and gives it the name of the old one.
func replace(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".report-")
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}

	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("report %s: %w", path, err)
	}
	return nil
}
