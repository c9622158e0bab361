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

// export copies the lines of a gateway's export, and sees that they are all.
func (r *remote) export(ctx context.Context, wish exportWish, out io.Writer) (counts exportCounts, err error) {
	q := url.Values{"start": {wish.times[0]}, "m": wish.metrics}
	for name, value := range map[string]string{"end": wish.times[1], "all": yes(wish.all), "plain": yes(wish.plain)} {
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

func yes(b bool) string {
	if b {
		return "true"
	}
	return ""
}

// copyExport copies lines up to the one that ends them.
func copyExport(out io.Writer, in io.Reader, from string) (counts exportCounts, err error) {
	lines := bufio.NewReaderSize(in, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return counts, fmt.Errorf("%s: the export was cut off: %w", from, err)
		}
		if text, ok := bytes.CutPrefix(line, []byte(endMark)); ok {
			return counts, json.Unmarshal(text, &counts)
		}
		if text, ok := bytes.CutPrefix(line, []byte(errorMark)); ok {
			return counts, fmt.Errorf("%s: the export failed: %s", from, bytes.TrimSpace(text))
		}
		if _, err := out.Write(line); err != nil {
			return counts, err
		}
	}
}

// grep asks for the names that match.
func (r *remote) grep(ctx context.Context, kind, expression string) (all []foundName, err error) {
	q := url.Values{"q": {expression}}
	if kind != "" {
		q.Set("kind", kind)
	}
	err = r.call(ctx, http.MethodGet, "/api/tools/names?"+q.Encode(), nil, &all)
	return all, err
}

// delete asks for a deletion.
func (r *remote) delete(ctx context.Context, wish deleteWish) (*Deleted, error) {
	done := new(Deleted)
	return done, r.call(ctx, http.MethodPost, "/api/tools/delete", wish, done)
}

// assign sends the list of names, in its order.
func (t *through) assign(ctx context.Context, names []listedName) error {
	if len(names) == 0 {
		return nil
	}
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "%s %s %s\n", nameMark, n.kind, n.name)
	}
	return t.remote.call(ctx, http.MethodPost, "/api/tools/remarks", b.String(), new(remarksAnswer))
}

// remark sends remarks.
func (t *through) remark(ctx context.Context, all []remark) (refused []refusal, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	var body []byte
	for _, r := range all {
		if body, err = appendRemark(body, r); err != nil {
			return nil, fmt.Errorf("line %d: %w", r.line, err)
		}
		body = append(body, '\n')
	}
	var answer remarksAnswer
	if err := t.remote.call(ctx, http.MethodPost, "/api/tools/remarks", string(body), &answer); err != nil {
		return nil, err
	}
	for _, r := range answer.Refused {
		if r.Line < 1 || r.Line > int64(len(all)) {
			return nil, fmt.Errorf("%s refused a line that was not sent: %d: %s", t.remote.url, r.Line, r.Error)
		}
		refused = append(refused, refusal{all[r.Line-1].line, errors.New(r.Error)})
	}
	return refused, nil
}
