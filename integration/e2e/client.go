package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Point is a data point as POST /api/put takes it. Value is the exact JSON text
// of the value, for 1 and 1.0 are stored differently.
type Point struct {
	Metric    string            `json:"metric"`
	Timestamp int64             `json:"timestamp"` // seconds, or milliseconds when over 32 bits
	Value     json.RawMessage   `json:"value"`
	Tags      map[string]string `json:"tags"`
}

// Answer is an HTTP answer, its body read to the end.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Get requests url, a whole address.
func Get(ctx context.Context, url string, header ...string) (Answer, error) {
	return request(ctx, http.MethodGet, url, nil, header)
}

// Post sends body, JSON text or something to be marshalled, to url. header
// holds names and values in turn.
func Post(ctx context.Context, url string, body any, header ...string) (Answer, error) {
	text, isText := body.(string)
	if !isText {
		b, err := json.Marshal(body)
		if err != nil {
			return Answer{}, fmt.Errorf("POST %s: %w", url, err)
		}
		text = string(b)
	}
	return request(ctx, http.MethodPost, url, strings.NewReader(text),
		append([]string{"Content-Type", "application/json"}, header...))
}

// request sends a request and reads the answer to its end. header holds names and values in turn.
func request(ctx context.Context, method, url string, body io.Reader, header []string) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return Answer{}, fmt.Errorf("%s %s: %w", method, url, err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Answer{}, fmt.Errorf("%s %s: %w", method, url, err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		return Answer{}, fmt.Errorf("%s %s: reading the answer: %w", method, url, err)
	}
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: b.Bytes()}, nil
}

// putBatch is how many points one request carries; OpenTSDB's default limit of
// a body is larger.
const putBatch = 50

// Put sends points to /api/put of the server at url, a batch after the other,
// and returns once all are stored: the parameter sync makes OpenTSDB wait for
// HBase. A point refused is an error.
func Put(ctx context.Context, url string, points []Point) error {
	for len(points) > 0 {
		n := min(putBatch, len(points))
		a, err := Post(ctx, url+"/api/put?details=true&sync=true&sync_timeout=60000", points[:n])
		if err != nil {
			return err
		}
		if a.Status != http.StatusOK {
			return fmt.Errorf("put to %s: status %d: %s", url, a.Status, a.Body)
		}
		points = points[n:]
	}
	return nil
}
