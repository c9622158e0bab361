package extra_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/flight"
	"github.com/gorilla/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/rpc/auth"
	"downpour/pushdown/rpc/auth/authtest"
	"downpour/pushdown/rpc/server"
)

var scopes = map[string]auth.Scope{
	gatewaytest.NoToken:    0,
	gatewaytest.WrongToken: 0,
	gatewaytest.ReadToken:  auth.Read,
	gatewaytest.WriteToken: auth.Write,
	gatewaytest.BothToken:  auth.Read | auth.Write,
	gatewaytest.AdminToken: auth.All,
}

// door is one way into the gateway. It opens to a token that has all scopes of needs and, if anyOf
// is set, one of anyOf. try says whether the token was let in, and what is wrong with a refusal.
type door struct {
	name  string
	needs auth.Scope
	anyOf auth.Scope
	try   func(token string) (let bool, wrong string)
}

func (d *door) opens(scope auth.Scope) bool {
	return scope&d.needs == d.needs && (d.anyOf == 0 || scope&d.anyOf != 0)
}

// Every door opens to those tokens alone that have its scopes: HTTP by every verb, telnet, the
// WebSocket and Flight, in the clear and by TLS.
//
//fault:dashboard-changed-by-readers auth.Write => auth.Read
func TestDoors(t *testing.T) {
	t.Parallel()
	for _, secured := range []bool{false, true} {
		b, doors := openDoors(t, secured)
		for _, d := range doors {
			for token, scope := range scopes {
				let, wrong := d.try(token)
				if want := d.opens(scope); let != want {
					t.Errorf("TLS %t: %s with token %q: let in %t, want %t", secured, d.name, token, let, want)
				}
				if wrong != "" {
					t.Errorf("TLS %t: %s with token %q: %s", secured, d.name, token, wrong)
				}
			}
		}
		t.Logf("TLS %t: %d doors, %d tokens", secured, len(doors), len(scopes))
		neverServed(b)
	}
}

// openDoors starts a gateway and a pushdown server, and lists their doors.
func openDoors(t *testing.T, secured bool) (*bench, []door) {
	t.Helper()
	var clientTLS *tls.Config
	cfg := config(0)
	cfg.TokenFile, cfg.AllowDelete = gatewaytest.TokenFile(t), true
	if secured {
		made := authtest.NewCertificate(t)
		cfg.TLSCert, cfg.TLSKey = made.CertFile, made.KeyFile
		var err error
		if clientTLS, err = cfg.ClientTLS(); err != nil {
			t.Fatal(err)
		}
	}
	st := gatewaytest.NewFaulty(memoryStore(t, cfg))
	b := &bench{T: t, Config: cfg, Store: st, TLS: clientTLS, Gateway: start(t, cfg, st)}
	a := b.Post("api/put", gatewaytest.GoodPoint, "Authorization", "Bearer "+gatewaytest.WriteToken)
	if a.Status != http.StatusNoContent {
		t.Fatalf("put: %d %s", a.Status, a.Body)
	}
	doors := slices.Concat(httpDoors(b), telnetDoors(b), flightDoors(b))
	return b, append(doors, door{
		name:  "socket",
		needs: auth.Read,
		try:   func(token string) (bool, string) { return socketDoor(b, token) },
	})
}

// asking has, by verb and route, a path and a body with which a request comes as far as the check
// of its scope, and the scopes that it needs beyond the route's own. All requests that change data
// are here, also those by GET. OVERRIDE is a GET with method_override, BODY a POST that deletes by
// its body.
var asking = map[string]struct {
	path, body string
	more       auth.Scope
}{
	"GET api/query": {"api/query?start=1356998400&end=1357002000&m=sum:m", "", 0},
	"POST api/query": {
		"", `{"start":1356998400,"end":1357002000,"queries":[{"aggregator":"sum","metric":"m"}]}`, 0,
	},
	"DELETE api/query":         {"api/query?start=1356998400&end=1357002000&m=sum:m", "", auth.All},
	"GET q":                    {"q?start=1356998400&end=1357002000&m=sum:m&wxh=100x100&png", "", 0},
	"POST q":                   {"q?start=1356998400&end=1357002000&m=sum:m&ascii", "", 0},
	"POST api/put":             {"", gatewaytest.GoodPoint, 0},
	"GET api/suggest":          {"api/suggest?type=metrics", "", 0},
	"GET suggest":              {"suggest?type=metrics", "", 0},
	"GET api/search/":          {"api/search/lookup?m=m", "", 0},
	"GET api/query/last":       {"api/query/last?timeseries=m", "", 0},
	"GET api/uid/assign":       {"api/uid/assign?metric=new1", "", auth.Write},
	"POST api/uid/assign":      {"", `{"metric":["new2"]}`, auth.Write},
	"GET api/uid/rename":       {"api/uid/rename?metric=new1&name=new3", "", auth.All},
	"POST api/uid/rename":      {"", `{"metric":"new3","name":"new1"}`, auth.All},
	"GET api/uid/uidmeta":      {"api/uid/uidmeta?uid=000001&type=metric", "", 0},
	"POST api/uid/uidmeta":     {"", `{"uid":"000001","type":"metric","notes":"n"}`, auth.Write},
	"PUT api/uid/uidmeta":      {"", `{"uid":"000001","type":"metric","notes":"n"}`, auth.Write},
	"DELETE api/uid/uidmeta":   {"api/uid/uidmeta?uid=000001&type=metric", "", auth.Write},
	"GET api/uid/tsmeta":       {"api/uid/tsmeta?tsuid=000001000001000001", "", 0},
	"POST api/uid/tsmeta":      {"", `{"tsuid":"000001000001000001","notes":"n"}`, auth.Write},
	"PUT api/uid/tsmeta":       {"", `{"tsuid":"000001000001000001","notes":"n"}`, auth.Write},
	"DELETE api/uid/tsmeta":    {"api/uid/tsmeta?tsuid=000001000001000001", "", auth.Write},
	"GET api/annotation":       {"api/annotation?start_time=1356998400", "", 0},
	"POST api/annotation":      {"", `{"startTime":1356998400,"notes":"n"}`, auth.Write},
	"PUT api/annotation":       {"", `{"startTime":1356998400,"notes":"n"}`, auth.Write},
	"DELETE api/annotation":    {"api/annotation?start_time=1356998400", "", auth.Write},
	"POST api/annotation/":     {"api/annotation/bulk", `[{"startTime":1356998400,"notes":"n"}]`, auth.Write},
	"PUT api/annotation/":      {"api/annotation/bulk", `[{"startTime":1356998400,"notes":"n"}]`, auth.Write},
	"DELETE api/annotation/":   {"api/annotation/bulk?start_time=1356998400&global", "", auth.Write},
	"GET api/annotations":      {"api/annotations?start_time=1356998400", "", 0},
	"POST api/annotations":     {"", `{"startTime":1356998400,"notes":"n"}`, auth.Write},
	"PUT api/annotations":      {"", `{"startTime":1356998400,"notes":"n"}`, auth.Write},
	"DELETE api/annotations":   {"api/annotations?start_time=1356998400", "", auth.Write},
	"POST api/annotations/":    {"api/annotations/bulk", `[{"startTime":1356998400,"notes":"n"}]`, auth.Write},
	"PUT api/annotations/":     {"api/annotations/bulk", `[{"startTime":1356998400,"notes":"n"}]`, auth.Write},
	"DELETE api/annotations/":  {"api/annotations/bulk?start_time=1356998400&global", "", auth.Write},
	"POST api/tree":            {"", `{"name":"n"}`, auth.Write},
	"PUT api/tree":             {"", `{"treeId":1,"name":"n"}`, auth.Write},
	"DELETE api/tree":          {"api/tree?treeid=1", "", auth.Write},
	"POST api/tree/rule":       {"", `{"treeId":1,"type":"METRIC"}`, auth.Write},
	"PUT api/tree/rule":        {"", `{"treeId":1,"type":"METRIC"}`, auth.Write},
	"DELETE api/tree/rule":     {"api/tree/rule?treeid=1&level=0&order=0", "", auth.Write},
	"POST api/tree/rules":      {"", `[{"treeId":1,"type":"METRIC"}]`, auth.Write},
	"PUT api/tree/rules":       {"", `[{"treeId":1,"type":"METRIC"}]`, auth.Write},
	"DELETE api/tree/rules":    {"api/tree/rules?treeid=1", "", auth.Write},
	"POST api/tree/":           {"api/tree/rule/x", `{"treeId":1,"type":"METRIC"}`, auth.Write},
	"POST api/tree/test":       {"", `{"treeId":1,"tsuids":["000001000001000001"]}`, 0},
	"POST api/tree/collisions": {"", `{"treeId":1}`, 0},
	"OVERRIDE api/tree":        {"api/tree?name=n&method_override=post", "", auth.Write},
	"OVERRIDE api/tree/rule": {
		"api/tree/rule?treeid=1&level=0&order=0&type=metric&method_override=put", "", auth.Write,
	},
	"OVERRIDE api/tree/rules":  {"api/tree/rules?treeid=1&method_override=delete", "", auth.Write},
	"PUT api/dashboards/":      {"api/dashboards/x", `{"form":1,"panels":[]}`, auth.Write},
	"DELETE api/dashboards/":   {"api/dashboards/x", "", auth.Write},
	"OVERRIDE api/dashboards/": {"api/dashboards/x?method_override=delete", "", auth.Write},
	"GET api/stats/":           {"api/stats/query", "", 0},
	"OVERRIDE api/query": {
		"api/query?start=1356998400&end=1357002000&m=sum:m&method_override=delete", "", auth.All,
	},
	"OVERRIDE api/uid/uidmeta": {"api/uid/uidmeta?uid=000001&type=metric&notes=x&method_override=post", "", auth.Write},
	"OVERRIDE api/uid/tsmeta":  {"api/uid/tsmeta?tsuid=000001000001000001&notes=x&method_override=put", "", auth.Write},
	"OVERRIDE api/annotation":  {"api/annotation?start_time=1356998400&notes=x&method_override=post", "", auth.Write},
	"OVERRIDE api/annotation/": {
		"api/annotation/bulk?start_time=1356998400&global&method_override=delete", "", auth.Write,
	},
	"BODY api/query": {
		"",
		`{"start":1356998400,"end":1357002000,"delete":true,"queries":[{"aggregator":"sum","metric":"m"}]}`,
		auth.All,
	},
}

// routeScopes has the scope that each route needs, 0 if it needs no token. A route that is missing
// here fails the test.
var routeScopes = func() map[string]auth.Scope {
	out := map[string]auth.Scope{
		"": 0, "favicon.ico": 0, "d": 0, "ops": 0, "docs": 0, "api/ops": auth.All, "api/ops/series": auth.All,
		"api/series/top": auth.All, "api/ops/": auth.All, "healthz": 0, "readyz": 0, "api/ws": 0, "api/put": auth.Write,
		"api/rollup": auth.Write, "api/histogram": auth.Write, "prometheus/api/v1/write": auth.Write,
		"v1/metrics":     auth.Write,
		"api/dropcaches": auth.All,
		"dropcaches":     auth.All, "logs": auth.All, "api/tools/export": auth.Read, "api/tools/names": auth.Read,
		"api/tools/import": auth.Write, "api/tools/assign": auth.Write, "api/tools/rename": auth.Admin,
		"api/tools/trees": auth.Write, "api/tools/delete": auth.Admin, "api/tools/uid": auth.Admin,
		"api/tools/fsck": auth.Admin, "api/tools/checkpoint": auth.Admin, "api/tools/retention": auth.Admin,
		"api/tools/rollup": auth.Admin, "api/tools/scan": auth.Read,
	}
	for _, r := range strings.Fields(`metrics api/query api/suggest suggest api/aggregators aggregators
		api/config api/config/filters api/version version api/serializers api/uid api/uid/ api/uid/assign
		api/uid/rename api/uid/uidmeta api/uid/tsmeta api/search api/search/ api/annotation api/annotation/
		api/annotations api/annotations/ api/query/last api/stats api/stats/ stats api/query/exp api/query/gexp
		api/changes
		api/tree api/tree/ api/tree/branch api/tree/rule api/tree/rules api/tree/test api/tree/collisions
		api/tree/notmatched q api/dashboards api/dashboards/ prometheus/api/ prometheus/api/v1/query
		prometheus/api/v1/query_range prometheus/api/v1/series prometheus/api/v1/labels prometheus/api/v1/metadata
		prometheus/api/v1/format_query prometheus/api/v1/status/buildinfo prometheus/api/v1/read`) {
		out[r] = auth.Read
	}
	return out
}()

// knock is a request to a route. Its verb is one of asking's, its method HTTP's.
type knock struct {
	verb, method, route string
	path, body          string
	more                auth.Scope   // beyond the route's
	reads               httpio.Verbs // of the route
}

// knocks returns a request for every route and verb.
func knocks(t *testing.T) (all []knock) {
	t.Helper()
	used := map[string]bool{}
	for route, e := range routesOf(t) {
		for _, verb := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OVERRIDE", "BODY"} {
			r, given := asking[verb+" "+route]
			method := map[string]string{"OVERRIDE": "GET", "BODY": "POST"}[verb]
			if method != "" && !given {
				continue
			}
			if method == "" {
				method = verb
			}
			used[verb+" "+route] = given
			if r.path == "" {
				r.path = route
				if strings.HasSuffix(route, "/") {
					r.path += "x"
				}
			}
			all = append(all, knock{verb, method, route, r.path, r.body, r.more, e.Reads})
		}
	}
	for name := range asking {
		if !used[name] {
			t.Errorf("asking has %q, of which there is no such route or verb", name)
		}
	}
	return all
}

// httpDoors returns a door for every route, verb and spelling of the route.
func httpDoors(b *bench) (doors []door) {
	b.Helper()
	for _, k := range knocks(b.T) {
		base, known := routeScopes[k.route]
		if !known {
			b.Errorf("route %q has no scope in routeScopes", k.route)
			continue
		}
		for _, path := range spellings(k.path) {
			doors = append(doors, door{
				name:  k.verb + " " + path,
				needs: base | k.more,
				try:   httpDoor(b, k.method, path, k.body),
			})
		}
	}
	return doors
}

// spellings returns the paths that lead to one route.
func spellings(path string) []string {
	route, parameters, _ := strings.Cut(path, "?")
	if parameters != "" {
		parameters = "?" + parameters
	}
	all := []string{"/" + path}
	if rest, ok := strings.CutPrefix(route, "api/"); ok && rest != "ws" {
		all = append(all, "/api/v1/"+rest+parameters, "//API/"+strings.ToUpper(rest)+"/"+parameters)
	}
	return all
}

func httpDoor(b *bench, method, path, body string) func(string) (bool, string) {
	return func(token string) (bool, string) {
		b.Helper()
		var header []string
		if token != gatewaytest.NoToken {
			header = []string{"Authorization", "Bearer " + token}
		}
		a := b.Do(method, path, strings.NewReader(body), header...)
		want := http.StatusForbidden
		if scopes[token] == 0 {
			want = http.StatusUnauthorized
		}
		refused := a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden
		if refused && a.Status != want {
			return false, fmt.Sprintf("status %d, want %d", a.Status, want)
		}
		if refused && strings.Contains(a.Body, "1356998400") {
			return false, "a refusal with data: " + a.Body
		}
		return !refused, ""
	}
}

// neverServed checks that paths which are no routes are refused.
func neverServed(b *bench) {
	b.Helper()
	for _, path := range []string{"/api//put", "/api/put/x", "/api/v1", "/api", "/diediedie", "/api/diediedie",
		"/debug/pprof/", "/debug/vars", "/api/v2/put", "/api/%2e%2e/put", "/..%2fapi/put", "/s/../api/put"} {
		for _, method := range []string{"GET", "POST"} {
			a := b.Do(method, path, strings.NewReader(gatewaytest.GoodPoint),
				"Authorization", "Bearer "+gatewaytest.AdminToken)
			if a.Status < 400 {
				b.Errorf("%s %s: got %d, want an error: it is no route", method, path, a.Status)
			}
		}
	}
}

func socketDoor(b *bench, token string) (bool, string) {
	b.Helper()
	d := websocket.Dialer{Subprotocols: []string{"downpour.v1"}, TLSClientConfig: b.TLS}
	if token != gatewaytest.NoToken {
		d.Subprotocols = append(d.Subprotocols, "bearer."+token)
	}
	scheme := "ws://"
	if b.TLS != nil {
		scheme = "wss://"
	}
	c, resp, err := d.Dial(scheme+b.Address()+"/api/ws", nil)
	if err == nil {
		c.Close()
		return true, ""
	}
	// The socket answers 401 to a token without the scope, as to none.
	if resp == nil || resp.StatusCode != http.StatusUnauthorized {
		return false, fmt.Sprintf("%v, %v", resp, err)
	}
	return false, ""
}

// telnetDoors returns a door for every command. version and help need a token of any scope.
func telnetDoors(b *bench) []door {
	f := func(line string, needs, anyOf auth.Scope) door {
		return door{"telnet " + line, needs, anyOf, telnetDoor(b, line)}
	}
	return []door{
		f("put m 1356998400 1 host=a", auth.Write, 0),
		f("histogram m 1356998400 0,1=1 host=a", auth.Write, 0),
		f("stats", auth.Read, 0),
		f("version", 0, auth.All),
		f("help", 0, auth.All),
		f("dropcaches", auth.All, 0),
		f("diediedie", auth.Read, 0), // which is refused to everybody, but in other words to who may read
		f("rollup 1h-sum m 1356998400 1 host=a", auth.Write, 0),
		f("nonsense", auth.Read, 0),
	}
}

func telnetDoor(b *bench, line string) func(string) (bool, string) {
	return func(token string) (bool, string) {
		b.Helper()
		c := b.Dial()
		lines := line + "\n"
		if token != gatewaytest.NoToken {
			lines = "auth " + token + "\n" + lines
		}
		// One write: an unknown token ends the connection, and a line that comes after its end would
		// reset it before the answer is read.
		io.WriteString(c, lines)
		answer := c.Rest()
		if token == gatewaytest.WrongToken && !strings.HasPrefix(answer, "auth: unknown token\n") {
			return false, "answered " + answer
		}
		if line == "diediedie" && strings.Contains(answer, "diediedie: refused") {
			return true, ""
		}
		if line == "stats" { // points that were refused are counted by that word, too
			answer = regexp.MustCompile(`(?m)^downpour\..*$`).ReplaceAllString(answer, "")
		}
		return !strings.Contains(answer, "authorized") && !strings.Contains(answer, "auth: unknown token"), ""
	}
}

// flightDoors returns a door for every call of a pushdown server next to the gateway. All need the
// read scope, because the server only reads.
func flightDoors(b *bench) (doors []door) {
	b.Helper()
	call := flightClient(b)
	empty, ticket := &flight.Empty{}, &flight.Ticket{Ticket: []byte("{}")}
	descriptor := &flight.FlightDescriptor{}
	calls := map[string]func(context.Context, flight.FlightServiceClient) error{
		"DoGet": func(ctx context.Context, c flight.FlightServiceClient) error {
			s, err := c.DoGet(ctx, ticket)
			return first(s, err)
		},
		"DoAction": func(ctx context.Context, c flight.FlightServiceClient) error {
			s, err := c.DoAction(ctx, &flight.Action{Type: "hello"})
			return first(s, err)
		},
		"ListActions": func(ctx context.Context, c flight.FlightServiceClient) error {
			s, err := c.ListActions(ctx, empty)
			return first(s, err)
		},
		"ListFlights": func(ctx context.Context, c flight.FlightServiceClient) error {
			s, err := c.ListFlights(ctx, &flight.Criteria{})
			return first(s, err)
		},
		"GetFlightInfo": func(ctx context.Context, c flight.FlightServiceClient) error {
			_, err := c.GetFlightInfo(ctx, descriptor)
			return err
		},
		"GetSchema": func(ctx context.Context, c flight.FlightServiceClient) error {
			_, err := c.GetSchema(ctx, descriptor)
			return err
		},
		"DoPut": func(ctx context.Context, c flight.FlightServiceClient) error {
			s, err := c.DoPut(ctx)
			return first(s, err)
		},
		"DoExchange": func(ctx context.Context, c flight.FlightServiceClient) error {
			s, err := c.DoExchange(ctx)
			return first(s, err)
		},
		"Handshake": func(ctx context.Context, c flight.FlightServiceClient) error {
			s, err := c.Handshake(ctx)
			return first(s, err)
		},
	}
	for name, do := range calls {
		doors = append(doors, door{name: "Flight " + name, needs: auth.Read, try: func(token string) (bool, string) {
			ctx, cancel := context.WithTimeout(b.Context(), gatewaytest.Patience)
			defer cancel()
			if token != gatewaytest.NoToken {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
			}
			code := status.Code(do(ctx, call))
			if code == codes.Unavailable || code == codes.DeadlineExceeded {
				return false, code.String()
			}
			return code != codes.Unauthenticated && code != codes.PermissionDenied, ""
		}})
	}
	return doors
}

// first is the error of a stream's first message.
func first[T any](s interface{ Recv() (T, error) }, err error) error {
	if err == nil {
		_, err = s.Recv()
	}
	return err
}

// flight starts a pushdown server with the gateway's tokens and certificate, and returns a client
// of it.
func flightClient(b *bench) flight.FlightServiceClient {
	b.Helper()
	tokens, err := auth.Load(b.Config.TokenFile, auth.Read, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	serverTLS, err := b.Config.PushdownServerTLS(nil)
	if err != nil {
		b.Fatal(err)
	}
	s, err := server.NewServer(
		server.Config{Program: "test", Table: "tsdb", Schema: encoding.DefaultSchema(), TLS: serverTLS,
			Allow: func(token string) bool { return tokens.Check(token)&auth.Read != 0 }},
		b.Store,
	)
	if err != nil {
		b.Fatal(err)
	}
	address := gatewaytest.ServeFlight(b.T, s)
	creds := insecure.NewCredentials()
	if b.TLS != nil {
		creds = credentials.NewTLS(b.TLS)
	}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(creds))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	return flight.NewFlightServiceClient(conn)
}

// A gateway with a certificate serves nobody in the clear and speaks no TLS 1.1, and a client that
// does not trust the certificate fails.
func TestDoors_TLSOnly(t *testing.T) {
	made := authtest.NewCertificate(t)
	b := open(t, func(c *gateway.Config) { c.TLSCert, c.TLSKey = made.CertFile, made.KeyFile })
	if !strings.HasPrefix(b.Gateway.URL(), "https://") {
		t.Fatalf("got the URL %s, want https", b.Gateway.URL())
	}
	if _, err := b.Try(t.Context(), "GET", "/healthz", nil); err == nil ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("a client that does not know the certificate: got %v, want an error about it", err)
	}
	resp, err := http.Get("http://" + b.Address() + "/healthz")
	if err == nil {
		resp.Body.Close()
		if resp.StatusCode == 200 {
			t.Error("served in the clear")
		}
	}
	c := b.Dial() // plain
	fmt.Fprintf(c, "version\n")
	text := make([]byte, 100)
	n, _ := c.Read(text)
	if strings.Contains(string(text[:n]), "downpour") {
		t.Errorf("a telnet line in the clear is answered: %q", text[:n])
	}
	old, err := tls.Dial("tcp", b.Address(),
		&tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10})
	if err == nil {
		old.Close()
		t.Error("TLS 1.1 is spoken")
	}
}
