package extra_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"image/color"
	"image/png"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/gateway/gatewaytest"
	"downpour/integration/conformance"
)

// graphStep is a request to /q or to a related route, and what was recorded of the answer.
type graphStep struct {
	Method, Path string
	Status       int
	Headers      map[string]string
	Response     json.RawMessage
	Text         *string // of an answer that is text
	Reason       *string // what a page of HTML says
	PNG          *struct{ Width, Height int }
	// Server names the setting of the OpenTSDB that was asked, empty for the default one.
	Server string
}

// graphRules say which answers differ from the recorded ones, and why. The first rule that fits a
// step counts. compatibility.md lists the same differences.
var graphRules = []struct {
	name string
	fits func(s *graphStep, text string) bool
	// want changes what was recorded into what is wanted; nil leaves the step out.
	want func(s *graphStep)
}{
	{
		"other routes have tests of their own",
		func(s *graphStep, _ string) bool { return !strings.HasPrefix(s.Path, "/q") },
		nil,
	},
	{
		"pictures need no gnuplot",
		func(s *graphStep, _ string) bool { return s.Server == "without gnuplot" && s.Status == 500 },
		answered200,
	},
	{"there is no list of allowed options", func(s *graphStep, text string) bool {
		return strings.Contains(s.Server, "allowlist") && s.Status != 200
	}, answered200},
	{
		"gnuplot's colours work",
		func(s *graphStep, text string) bool { return strings.Contains(text, "obsolete color option") },
		answered200,
	},
	{"a key's word is checked",
		func(s *graphStep, text string) bool { return strings.Contains(text, "unknown key option") },
		says("'key' was invalid. Must satisfy the pattern (out|left|top|center|right|horiz|box|bottom)?\\s?")},
	{"formats work", func(s *graphStep, text string) bool { return strings.Contains(text, "URLDecoder") }, answered200},
	{"an unknown name is the client's fault", func(s *graphStep, text string) bool {
		return s.Status == 500 && strings.Contains(text, "java.lang.RuntimeException: Unexpected exception")
	}, says("No such name for ")},
	{"there is no cache", func(s *graphStep, text string) bool { return strings.Contains(text, "cachehit") },
		func(s *graphStep) {
			var counts map[string]any
			json.Unmarshal(s.Response, &counts)
			delete(counts, "cachehit")
			if counts["points"] == nil { // OpenTSDB leaves them out of a cached answer
				counts["points"], counts["plotted"], counts["etags"] = 0, 0, [][]string{{}}
			}
			s.Response, _ = json.Marshal(counts)
			// The answer is then text, which takes precedence where nothing is cached.
			if strings.Contains(s.Path, "ascii") {
				s.Response = nil
			}
		}},
}

// answered200 wants any answer with 200 where OpenTSDB had an error.
func answered200(s *graphStep) { s.Status, s.Response, s.Reason = 200, nil, nil }

// says wants a 400 that begins with a text.
func says(text string) func(*graphStep) {
	return func(s *graphStep) {
		s.Status = 400
		if s.Response != nil {
			s.Response, _ = json.Marshal(map[string]string{"err": text})
			return
		}
		s.Reason = &text
	}
}

// Every request to /q gets the recorded answer, except for graphRules: the lines of text, the counts,
// the errors, the headers and the size of pictures.
func TestGraphConformance(t *testing.T) {
	t.Parallel()
	var r struct {
		conformance.Data
		Steps []graphStep
	}
	if err := conformance.Decode("q_seed51", &r); err != nil {
		t.Fatal(err)
	}
	cfg := config(0)
	st := memoryStore(t, cfg)
	g := start(t, cfg, st)
	b := &bench{T: t, Config: cfg, Store: gatewaytest.NewFaulty(st), Gateway: g}
	gatewaytest.Fill(t, &r.Data, g, st, cfg.Schema())
	b.Post("/api/annotation",
		`{"startTime":1357603800,"tsuid":"000001000001000005000002000009","description":"deploy"}`)

	at := gatewaytest.TwoFronts(t, g, config(0), st)
	equal, byRule := 0, map[string]int{}
	for i, s := range r.Steps {
		text := string(s.Response)
		if s.Reason != nil {
			text = *s.Reason
		}
		rule := slices.IndexFunc(graphRules, func(r struct {
			name string
			fits func(*graphStep, string) bool
			want func(*graphStep)
		}) bool {
			return r.fits(&s, text)
		})
		if rule >= 0 {
			byRule[graphRules[rule].name]++
			if graphRules[rule].want == nil {
				continue
			}
			graphRules[rule].want(&s)
		}
		for _, g := range at.Of(i) {
			asked := &bench{T: t, Config: cfg, Store: b.Store, Gateway: g.Server}
			if diff := s.differs(asked.Do(s.Method, s.Path, nil)); diff != "" {
				t.Errorf("%s: step %d %s: %s", g.How, i, s.Path, diff)
			} else if rule < 0 {
				equal++
			}
		}
	}
	t.Logf("%d answers to %d steps are equal, by rules %v", equal, len(r.Steps), byRule)
}

// differs returns how an answer differs from what was recorded.
func (s *graphStep) differs(a answer) string {
	if a.Status != s.Status {
		return fmt.Sprintf("%d, want %d: %.300s", a.Status, s.Status, a.Body)
	}
	for name, want := range s.Headers {
		if got := a.Header.Get(name); s.Reason != nil && got != want || name == "Cache-Control" && got != want {
			return fmt.Sprintf("%s: %q, want %q", name, got, want)
		}
	}
	switch {
	case s.Text != nil:
		return cmp.Diff(textPoints(*s.Text), textPoints(a.Body))
	case s.PNG != nil:
		img, err := png.DecodeConfig(strings.NewReader(a.Body))
		_, ok := img.ColorModel.(color.Palette)
		if !ok || err != nil || img.Width != s.PNG.Width || img.Height != s.PNG.Height {
			return fmt.Sprintf("a picture of %dx%d, %v, want %dx%d",
				img.Width, img.Height, err, s.PNG.Width, s.PNG.Height)
		}
	case s.Reason != nil:
		if got := reasonOf(a.Body); !strings.HasPrefix(got, *s.Reason) || *s.Reason == "" && got != "" {
			return fmt.Sprintf("it says %q, want %q", got, *s.Reason)
		}
	case s.Response != nil:
		return cmp.Diff(graphCounts(s.Response), graphCounts([]byte(a.Body)))
	}
	return ""
}

// textPoints returns lines of points with their values parsed: Java does not always print a double
// with the fewest digits.
func textPoints(text string) (lines []string) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if v, err := strconv.ParseFloat(words[2], 64); err == nil && strings.ContainsAny(words[2], ".E") {
			words[2] = fmt.Sprintf("double %v", v)
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}

var element = regexp.MustCompile(`<[^>]*>`)

// reasonOf returns the message of an error page.
func reasonOf(page string) string {
	_, reason, _ := strings.Cut(page, "The reason provided was:")
	return html.UnescapeString(element.ReplaceAllString(reason, ""))
}

// graphCounts are the counts of an answer: tags as a set, without times.
func graphCounts(body []byte) map[string]any {
	var out map[string]any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	d.Decode(&out)
	delete(out, "timing")
	if text, ok := out["err"].(string); ok && strings.HasPrefix(text, "No such name for ") {
		out["err"] = "No such name for " // OpenTSDB does not say which name
	}
	lists, _ := out["etags"].([]any)
	for _, list := range lists {
		if tags, ok := list.([]any); ok {
			slices.SortFunc(tags, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		}
	}
	return out
}
