package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"downpour/encoding"
)

// gatewaySink writes through a running gateway: POST /api/put?details, whose answer
// names each refused point. Floats then take 8 bytes, like all that come by HTTP.
type gatewaySink struct {
	settings *Settings
	remote   *remote
}

func (t *gatewaySink) close() {}

// pointsPerPut is how many points one request carries.
const pointsPerPut = 5000

// putPoint is a point in the body of a put, and in the answer that refuses it.
type putPoint struct {
	Metric    string            `json:"metric"`
	Timestamp int64             `json:"timestamp"`
	Value     json.RawMessage   `json:"value"`
	Tags      map[string]string `json:"tags"`
}

// key is equal for a point that was sent and the same point in the answer, where
// the value may be a string.
func (p *putPoint) key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d %s", p.Metric, p.Timestamp, strings.Trim(string(p.Value), `"`))
	for _, k := range slices.Sorted(maps.Keys(p.Tags)) {
		fmt.Fprintf(&b, " %s=%s", k, p.Tags[k])
	}
	return b.String()
}

// gatewaySending is what gatewaySink.send returns.
type gatewaySending struct {
	done    chan struct{}
	refused []refusal
	err     error
}

// wait returns once the gateway has answered all requests: its answer says that the points are durable.
func (p *gatewaySending) wait(ctx context.Context) ([]refusal, error) {
	select {
	case <-p.done:
		return p.refused, p.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// send posts the points in the background, pointsPerPut at a time, one request after
// the other. The first request that fails is the last one.
func (t *gatewaySink) send(ctx context.Context, lines []linePoint) sending {
	p := &gatewaySending{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for part := range slices.Chunk(lines, pointsPerPut) {
			refused, err := t.post(ctx, part)
			p.refused = append(p.refused, refused...)
			if err != nil {
				p.err = fmt.Errorf("lines %d to %d: %w", part[0].number, part[len(part)-1].number, err)
				return
			}
		}
	}()
	return p
}

// post sends one request. Points with names that no gateway accepts are not sent: it
// refuses them itself.
func (t *gatewaySink) post(ctx context.Context, lines []linePoint) (refused []refusal, err error) {
	var points []putPoint
	var numbers []int64
	for i := range lines {
		p, err := lines[i].point(t.settings)
		if err != nil {
			refused = append(refused, refusal{lines[i].number, err})
			continue
		}

		out := putPoint{p.Metric, p.Time, valueText(p.Value), map[string]string{}}
		for _, tag := range p.Tags {
			out.Tags[tag.K] = tag.V
		}
		points, numbers = append(points, out), append(numbers, lines[i].number)
	}
	if len(points) == 0 {
		return refused, nil
	}

	status, body, err := t.remote.do(ctx, http.MethodPost, "/api/put?details", points)
	if err != nil {
		return refused, err
	}
	more, err := readPut(t.remote.url, status, body, points, numbers)
	return append(refused, more...), err
}

func valueText(v encoding.Value) json.RawMessage { return json.RawMessage(v.String()) }

// readPut returns the lines of the points that an answer refuses. Any other answer
// than success or refusal is an error: points may be lost.
func readPut(url string, status int, body []byte, points []putPoint, numbers []int64) (refused []refusal, err error) {
	var answer struct {
		Success, Failed *int
		Errors          []struct {
			Datapoint putPoint
			Error     string
		}
	}
	if status == http.StatusNoContent {
		return nil, nil
	}
	// A put of which points are refused is answered with 400; the others are stored.
	if status != http.StatusOK && status != http.StatusBadRequest || json.Unmarshal(body, &answer) != nil || answer.Success == nil || answer.Failed == nil {
		return nil, &answerError{url, status, errorMessage(body)}
	}

	lines := map[string][]int64{}
	for i := range points {
		if len(answer.Errors) > 0 { // without refusals no line has to be found
			lines[points[i].key()] = append(lines[points[i].key()], numbers[i])
		}
	}

	// Equal points have equal keys: each refusal takes the line of one of them.
	for _, e := range answer.Errors {
		key := e.Datapoint.key()
		if len(lines[key]) == 0 {
			return nil, fmt.Errorf("%s refused a point that was not sent: %s: %s", url, key, e.Error)
		}
		refused = append(refused, refusal{lines[key][0], errors.New(e.Error)})
		lines[key] = lines[key][1:]
	}

	if *answer.Failed != len(refused) || *answer.Success+*answer.Failed != len(points) {
		return refused, fmt.Errorf("%s counts %d points stored and %d refused, of %d", url, *answer.Success, *answer.Failed, len(points))
	}
	return refused, nil
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
