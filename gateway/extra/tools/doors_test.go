package tools_test

import (
	"downpour/gateway"
	"downpour/gateway/extra/retention"
	"net/http"
	"strings"
	"testing"

	"downpour/gateway/extra/tools"
)

var tokenOf = map[string]string{
	"nobody": "", "wrong": "nobody-0123456789", "read": "reader-0123456789", "write": "writer-0123456789",
	"admin": "operator-0123456789",
}

// Each route of the tools requires a token of its scope and its HTTP method, a mode does not have
// the routes of what it excludes, and requests from pages of another origin are refused.
func TestRoutes_doors(t *testing.T) {
	file := write(t, "read reader-0123456789\nwrite writer-0123456789\nadmin operator-0123456789\n")
	routes := []struct{ method, path, body, let string }{
		{"GET", "export?start=1&all=true", "", "read admin"},
		{"GET", "names?q=.", "", "read admin"},
		{"GET", "scan?arg=1&arg=sum&arg=m1", "", "read admin"},
		{"POST", "import", "#uid tagk host\n", "write admin"},
		{"POST", "assign", `{"kind":"tagk","names":["host"]}`, "write admin"},
		{"POST", "rename", `{"kind":"tagk","name":"host","to":"hosts"}`, "admin"},
		{"POST", "delete", `{"kind":"tagk","name":"hosts"}`, "admin"},
		{"POST", "uid", `{"command":"fsck"}`, "admin"},
		{"POST", "fsck", `{"full":true}`, "admin"},
		{"POST", "retention", `{}`, "admin"},
		{"POST", "checkpoint", "{}", "admin"}, // neither reads nor writes points: in every mode
	}
	for mode, refused := range map[string]string{"rw": "", "ro": "POST", "wo": "GET"} {
		p := embedded(t)
		p.use(func(st tools.Store) { p.named(st) })
		p.cfg.Mode, p.cfg.TokenFile, gateway.SettingsOf[retention.Settings](p.cfg).Retention = mode, file, "400d"
		p.serve(func(url string, _ tools.Store) {
			defer http.DefaultClient.CloseIdleConnections()
			for _, r := range routes {
				for name, token := range tokenOf {
					want := 401
					switch {
					case name != "nobody" && name != "wrong" && !strings.Contains(r.let, name):
						want = 403
					case strings.Contains(r.let, name) && r.method == refused && r.path != "checkpoint":
						want = 404
					case strings.Contains(r.let, name):
						want = 200
					}
					for _, from := range []string{"", "http://elsewhere.example"} {
						if from != "" && want == 200 {
							want = 403
						}
						status := request(t, r.method, url+"/api/tools/"+r.path, r.body, token, from)
						if status != want && from == "" || from != "" && status == 200 {
							t.Errorf("mode %s, %s %s by %s from %q: %d, want %d",
								mode, r.method, r.path, name, from, status, want)
						}
					}
				}
				if status := request(t, "DELETE", url+"/api/tools/"+r.path, "", tokenOf["admin"], ""); status != 405 {
					t.Errorf("DELETE %s: %d, want 405", r.path, status)
				}
			}
		})
	}
}

func request(t *testing.T, method, url, body, token, origin string) int {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if origin != "" {
		req.Header.Set("Origin", origin)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// A tool sends the token that its request needs. Without it the error names the status, or the
// variable from which the token is taken.
func TestTools_tokens(t *testing.T) {
	p := embedded(t)
	p.cfg.TokenFile = write(t, "read reader-0123456789\nwrite writer-0123456789\nadmin operator-0123456789\n")
	p.serve(func(url string, _ tools.Store) {
		defer http.DefaultClient.CloseIdleConnections()
		p.tokens = tools.Tokens{Read: tokenOf["read"], Write: tokenOf["write"]}
		for _, args := range [][]string{
			{"import", write(t, lines(0, 3)+`#note {"value":{"startTime":1356998401,"description":"a"}}`+"\n")},
			{"export", "1", "sys.cpu"},
			{"uid", "grep", "cpu"},
		} {
			if err := p.tool(url, nil, args[0], args[1:]...); err != nil {
				t.Errorf("%q with read and write tokens: got %v, want no error", args, err)
			}
		}
		p.refusedAt(url, "answered 403", "uid", "delete", "metrics", "sys.cpu")
		p.tokens.Admin = tokenOf["admin"]
		for _, args := range [][]string{{"mkmetric", "m"}, {"uid", "delete", "metrics", "m"}} {
			if err := p.tool(url, nil, args[0], args[1:]...); err != nil {
				t.Errorf("%q with all tokens: got %v, want no error", args, err)
			}
		}
		p.tokens = tools.Tokens{}
		p.refusedAt(url, "its token is taken from DOWNPOUR_TOKEN_FILE", "uid", "grep", "cpu")
	})
}
