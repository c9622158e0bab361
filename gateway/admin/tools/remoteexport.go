package tools

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// export copies the lines of a gateway's export to out. It returns an error if the
// export was cut off.
func (r *remote) export(ctx context.Context, req exportRequest, out io.Writer) (counts exportCounts, err error) {
	q := url.Values{"start": {req.times[0]}, "m": req.metrics}
	for name, value := range map[string]string{"end": req.times[1], "all": trueOrEmpty(req.all), "plain": trueOrEmpty(req.plain)} {
		if value != "" {
			q.Set(name, value)
		}
	}

	resp, err := r.send(ctx, http.MethodGet, "/api/tools/export?"+q.Encode(), nil)
	if err != nil {
		return counts, err
	}
	defer resp.Body.Close()

	if resp.StatusCode != http.StatusOK {
		body, err := io.ReadAll(resp.Body)
		return counts, errors.Join(&answerError{r.url, resp.StatusCode, errorMessage(body)}, err)
	}
	return copyExport(out, resp.Body, r.url)
}

// trueOrEmpty returns the value of a query parameter.
func trueOrEmpty(b bool) string {
	if b {
		return "true"
	}
	return ""
}

// copyExport copies lines up to the one that ends the export.
func copyExport(out io.Writer, in io.Reader, from string) (counts exportCounts, err error) {
	lines := bufio.NewReaderSize(in, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return counts, fmt.Errorf("%s: the export was cut off: %w", from, err)
		}

		if text, ok := bytes.CutPrefix(line, []byte(endPrefix)); ok {
			return counts, json.Unmarshal(text, &counts)
		}
		if text, ok := bytes.CutPrefix(line, []byte(errorPrefix)); ok {
			return counts, fmt.Errorf("%s: the export failed: %s", from, bytes.TrimSpace(text))
		}

		if _, err := out.Write(line); err != nil {
			return counts, err
		}
	}
}

// grep asks the gateway for the names that match.
func (r *remote) grep(ctx context.Context, kind, expression string) (all []foundName, err error) {
	q := url.Values{"q": {expression}}
	if kind != "" {
		q.Set("kind", kind)
	}
	err = r.call(ctx, http.MethodGet, "/api/tools/names?"+q.Encode(), nil, &all)
	return all, err
}

// delete asks the gateway to delete a name.
func (r *remote) delete(ctx context.Context, req deleteRequest) (*Deleted, error) {
	done := new(Deleted)
	return done, r.call(ctx, http.MethodPost, "/api/tools/delete", req, done)
}

// assign sends the list of names, in the order given.
func (t *gatewaySink) assign(ctx context.Context, names []nameLine) error {
	if len(names) == 0 {
		return nil
	}
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "%s %s %s\n", namePrefix, n.kind, n.name)
	}
	return t.remote.call(ctx, http.MethodPost, "/api/tools/remarks", b.String(), new(metaAnswer))
}

// writeMeta sends meta lines.
func (t *gatewaySink) writeMeta(ctx context.Context, all []metaLine) (refused []refusal, err error) {
	if len(all) == 0 {
		return nil, nil
	}

	var body []byte
	for _, r := range all {
		if body, err = appendMetaLine(body, r); err != nil {
			return nil, fmt.Errorf("line %d: %w", r.line, err)
		}
		body = append(body, '\n')
	}

	var answer metaAnswer
	if err := t.remote.call(ctx, http.MethodPost, "/api/tools/remarks", string(body), &answer); err != nil {
		return nil, err
	}

	// The gateway numbers the lines of the body, from 1.
	for _, r := range answer.Refused {
		if r.Line < 1 || r.Line > int64(len(all)) {
			return nil, fmt.Errorf("%s refused a line that was not sent: %d: %s", t.remote.url, r.Line, r.Error)
		}
		refused = append(refused, refusal{all[r.Line-1].line, errors.New(r.Error)})
	}
	return refused, nil
}
