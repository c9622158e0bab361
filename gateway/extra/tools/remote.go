package tools

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"downpour/gateway/api/standby"
)

// remote is a client of a running gateway, or of the handler of this process's own.
type remote struct {
	url    string // without a slash at the end
	own    bool   // errors do not name the gateway, because there is none
	tokens Tokens
	client *http.Client
	end    func() error
}

func newRemote(url string, tokens Tokens, config *tls.Config) *remote {
	transport := &http.Transport{TLSClientConfig: config, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute}
	r := &remote{url: strings.TrimRight(url, "/"), tokens: tokens, client: &http.Client{Transport: transport}}
	r.end = func() error {
		r.client.CloseIdleConnections()
		return nil
	}
	return r
}

// close closes the connections to the gateway, or the store of this process.
func (r *remote) close() error { return r.end() }

// answerError is returned for an answer whose status is not the wanted one.
type answerError struct {
	url     string // empty for one of this process's own
	status  int
	message string
}

// Error names the gateway and repeats its message.
func (e *answerError) Error() string {
	if e.url == "" {
		return e.message
	}
	return fmt.Sprintf("%s answered %d: %s", e.url, e.status, e.message)
}

// failed returns the error of an answer.
func (r *remote) failed(status int, body []byte) error {
	e := &answerError{r.url, status, errorMessage(body)}
	if r.own {
		e.url = ""
	}
	return e
}

// do sends a request and returns the status and the body of any answer. in is the
// body: nil for none, anything else as JSON.
func (r *remote) do(ctx context.Context, method, path string, in any) (int, []byte, error) {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return 0, nil, err
		}
		body = bytes.NewReader(text)
	}
	resp, err := r.send(ctx, method, path, body)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// reading are the paths for which a token for reading is enough.
var reading = []string{
	"/api/config", "/readyz", "/api/query", "/api/dashboards",
	"/api/tools/export", "/api/tools/scan", "/api/tools/names",
}

// send sends a request, with pairs of header fields; the answer's body is the caller's to close.
func (r *remote) send(
	ctx context.Context, method, path string, body io.Reader, header ...string,
) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.url+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	write := method == http.MethodPut ||
		!slices.ContainsFunc(reading, func(p string) bool { return strings.HasPrefix(path, p) })
	if token := r.tokens.forScope(write); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return r.client.Do(req)
}

// call is do for answers that must be a success.
func (r *remote) call(ctx context.Context, method, path string, in, out any) error {
	status, body, err := r.do(ctx, method, path, in)
	if err != nil {
		return err
	}
	if status < 200 || status > 299 {
		return r.failed(status, body)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("%s%s: %w", r.url, path, err)
	}
	return nil
}

// errorMessage is the message of an error object with the names that may be meant, or the beginning of what came
// instead.
func errorMessage(body []byte) string {
	var e struct{ Error json.RawMessage }
	var object struct {
		Message     string
		Suggestions []string
	}
	var text string
	// An error is an object with a message, or in some answers of OpenTSDB's API just a text.
	if json.Unmarshal(body, &e) == nil {
		if json.Unmarshal(e.Error, &object) == nil && object.Message != "" {
			if len(object.Suggestions) > 0 {
				object.Message += ", did you mean " + strings.Join(object.Suggestions, ", ") + "?"
			}
			return object.Message
		}
		if json.Unmarshal(e.Error, &text) == nil && text != "" {
			return text
		}
	}
	return string(body[:min(len(body), 200)])
}

// checkTimeout bounds a question whose answer needs no store.
const checkTimeout = 5 * time.Second

// check asks whether a gateway is there and serves one of the given stores, any if none is given. It returns the store
// that the gateway names, "" if it names none: such a gateway is trusted to serve the given one.
func (r *remote) check(ctx context.Context, stores ...string) (serves string, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var settings map[string]any
	if err := r.call(ctx, http.MethodGet, "/api/config", nil, &settings); err != nil {
		var refused *answerError
		if errors.As(err, &refused) &&
			(refused.status == http.StatusUnauthorized || refused.status == http.StatusForbidden) {
			return "", fmt.Errorf("%w (its token is taken from DOWNPOUR_TOKEN_FILE)", err)
		}
		return "", err
	}
	serves, _ = settings["DOWNPOUR_STORE"].(string)
	if serves != "" && len(stores) > 0 && !slices.Contains(stores, serves) {
		return "", fmt.Errorf("%s serves %s", r.url, serves)
	}
	return serves, nil
}

// awaits returns the store that a gateway waits for, "" if it has it, or if there is no gateway.
func (r *remote) awaits(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	resp, err := r.send(ctx, http.MethodGet, "/readyz", nil)
	if err != nil {
		return ""
	}
	resp.Body.Close()
	return resp.Header.Get(standby.Header)
}
