package graphroutes

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"time"

	"downpour/encoding"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/queryroutes"
	"downpour/gateway/extra/graph/picture"
	"downpour/gateway/metadata/annotation"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/pushdown/process/memory"
)

// drawing has a slot for each picture that is drawn at once: as many as there are CPUs, for
// drawing is nothing but computing. Source: GraphHandler, its pool of threads.
var drawing = make(chan struct{}, runtime.GOMAXPROCS(0))

// draw draws the picture.
func (g *request) draw(ctx context.Context, notes *annotation.Catalog) ([]byte, error) {
	p := &picture.Picture{Start: g.Start, End: g.End, Zone: g.zone, Options: g.options}
	for i, groups := range g.groups {
		for k := range groups {
			r := &groups[k].Result
			p.Series = append(p.Series, picture.Series{
				Name:    nameInKey(r),
				Points:  r.Points,
				OnRight: g.options.OnRight[i],
			})
			if !g.NoAnnotations {
				p.Notes = appendNotes(p.Notes, r.Annotations)
			}
		}
	}
	if err := g.addGlobalNotes(ctx, notes, p); err != nil {
		return nil, err
	}

	// No more pictures at a time than there are CPUs.
	select {
	case drawing <- struct{}{}:
		defer func() { <-drawing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	body, err := p.Draw(picture.Form(g.form), picture.Guard{
		Reserve: func(n int64) error { return memory.Reserve(ctx, n) },
		Check:   func() error { return context.Cause(ctx) },
	})
	var many *picture.TooManyError
	if errors.As(err, &many) {
		return nil, query.TooMuch("Sorry, %s. %s", many.Error(), httpio.Advice)
	}
	return body, err
}

// nameInKey returns the text of a line in the key. Source: Plot.writeGnuplotScript.
//
//	sys.cpu{host=web01, dc=sjc}
func nameInKey(r *engine.Result) string {
	var tags []string
	for _, t := range javaTags(r) {
		tags = append(tags, t.K+"="+t.V)
	}
	return r.Metric + "{" + strings.Join(tags, ", ") + "}"
}

// appendNotes adds annotations, which are JSON as the API writes them.
func appendNotes(to []picture.Note, notes []json.RawMessage) []picture.Note {
	for _, text := range notes {
		if a, err := encoding.ParseAnnotation(text); err == nil { // the engine wrote them: all can be read
			to = append(to, noteOf(a))
		}
	}
	return to
}

// noteOf returns an annotation as a picture shows it, its time in ms.
func noteOf(a encoding.Annotation) picture.Note {
	start := a.StartTime
	if start>>32 == 0 { // seconds
		start *= 1000
	}
	return picture.Note{Time: start, Text: a.Description}
}

// addGlobalNotes adds the annotations of no series, if the request asks for them.
func (g *request) addGlobalNotes(ctx context.Context, notes *annotation.Catalog, p *picture.Picture) error {
	if !g.GlobalAnnotations || g.NoAnnotations {
		return nil
	}
	found, err := notes.Global(ctx, g.Start/1000, g.End/1000)
	for _, a := range found {
		p.Notes = append(p.Notes, noteOf(a))
	}
	return err
}

// sendPicture sends a picture, which is there whole.
func (g *request) sendPicture(w http.ResponseWriter, now time.Time, body []byte) error {
	setHeaders(w.Header(), "image/png", g.maxAge(now))
	if g.form == asSVG {
		// An SVG that is opened as a page could run scripts. There are none in it; this is
		// for the day on which that is wrong.
		w.Header().Set("Content-Type", "image/svg+xml")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	}
	_, err := w.Write(body)
	return queryroutes.Abort(err)
}
