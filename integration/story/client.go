package story

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// patience is how long a story waits for an answer.
const patience = 5 * time.Minute

// header is a line "Name: value".
var header = regexp.MustCompile(`^([A-Z][A-Za-z-]*): (.*)$`)

// put puts points by HTTP, and waits until they are stored.
func (r *run) put(s *Step) (string, error) {
	type point struct {
		Metric    string            `json:"metric"`
		Timestamp json.RawMessage   `json:"timestamp"`
		Value     string            `json:"value"`
		Tags      map[string]string `json:"tags"`
	}
	var points []point
	for _, line := range s.Input {
		words := strings.Fields(line)
		if len(words) < 4 {
			return "", fmt.Errorf("got %q, want METRIC TIME VALUE TAG=VALUE …", line)
		}
		p := point{Metric: words[0], Timestamp: json.RawMessage(words[1]), Value: words[2], Tags: map[string]string{}}
		for _, tag := range words[3:] {
			key, value, _ := strings.Cut(tag, "=")
			p.Tags[key] = value
		}
		points = append(points, p)
	}
	body, err := json.Marshal(points)
	if err != nil {
		return "", err
	}
	a, err := r.ask("POST", "/api/put?sync", body, nil)
	if err != nil || a.status == http.StatusNoContent {
		return "", err
	}
	return a.text(nil), nil
}

// each sends a request for each line of its input, a path or a body, all with the headers above them, and prints its
// answer in one line.
func (r *run) each(s *Step) (out string, err error) {
	method, path, _ := strings.Cut(s.Args, " ")
	first := 0
	for first < len(s.Input) && header.MatchString(s.Input[first]) {
		first++
	}
	headers := s.Input[:first:first]
	for _, line := range s.Input[first:] {
		step := Step{Command: method, Args: path, Input: append(headers, line)}
		if method == "get" || method == "delete" {
			step.Args, step.Input = path+line, headers
		}
		answer, err := r.request(&step)
		if err != nil {
			return out, err
		}
		if answer = strings.ReplaceAll(strings.TrimSpace(answer), "\n", " "); answer == "" {
			answer = "-"
		}
		out += answer + "\n"
	}
	return out, nil
}

// request sends a request, and prints its answer.
func (r *run) request(s *Step) (string, error) {
	headers := http.Header{}
	input := s.Input
	for len(input) > 0 {
		m := header.FindStringSubmatch(input[0])
		if m == nil {
			break
		}
		headers.Add(m[1], r.tagsOf(m[2]))
		input = input[1:]
	}
	show, match := headers.Get("Show"), headers.Get("Match")
	headers.Del("Show")
	headers.Del("Match")
	only, err := regexp.Compile(match)
	if err != nil {
		return "", err
	}
	if match == "" {
		only = nil
	}
	a, err := r.ask(strings.ToUpper(s.Command), s.Args, []byte(strings.Join(input, "\n")), headers)
	if err != nil {
		return "", err
	}
	out := ""
	if show != "" {
		for name := range strings.SplitSeq(show, ", ") {
			value := a.header.Get(name)
			if name == "ETag" {
				value = r.tagNumber(value)
			}
			out += strings.TrimSpace(name+": "+value) + "\n"
		}
	}
	return out + a.text(only), nil
}

// tagNumber returns an ETag as stories show it: with the number of the tag, from 1, in place of its hash.
func (r *run) tagNumber(tag string) string {
	hash, is := strings.CutPrefix(strings.TrimSuffix(tag, `"`), `W/"`)
	if !is {
		return tag
	}
	i := slices.Index(r.tags, hash)
	if i < 0 {
		i, r.tags = len(r.tags), append(r.tags, hash)
	}
	return fmt.Sprintf(`W/"%d"`, i+1)
}

// tagsOf returns a header with the tags that a story means by their numbers.
func (r *run) tagsOf(value string) string {
	for i, hash := range r.tags {
		value = strings.ReplaceAll(value, fmt.Sprintf(`"%d"`, i+1), `"`+hash+`"`)
	}
	return value
}

// answer is one of HTTP.
type answer struct {
	status int
	header http.Header
	body   string
}

func (r *run) ask(method, path string, body []byte, headers http.Header) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+r.address+path, strings.NewReader(string(body)))
	if err != nil {
		return answer{}, err
	}
	if headers != nil {
		req.Header = headers
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(text)}, err
}

// planted is what the message of a fault says of its call: which one it was depends on how often the gateway has tried.
var planted = regexp.MustCompile(`, call \d+`)

// text returns the answer as stories show it, or only what matches in the body.
func (a answer) text(only *regexp.Regexp) (out string) {
	if only != nil {
		out = strings.Join(only.FindAllString(a.body, -1), "\n")
	} else {
		out = readable(a.status, a.body)
	}
	if a.status != http.StatusOK {
		out = strings.TrimSpace(fmt.Sprint(a.status, " ", out))
	}
	return planted.ReplaceAllString(out, "")
}

// readable returns the message of an error, the elements of a JSON array, or the body.
func readable(status int, body string) string {
	var failed struct {
		Error struct {
			Code    int
			Message string
		}
	}
	if json.Unmarshal([]byte(body), &failed) == nil && failed.Error.Code == status {
		return failed.Error.Message
	}
	if list, ok := elements([]byte(body)); ok && len(list) > 0 {
		return strings.Join(list, "\n")
	}
	return body
}

// elements returns the texts of the elements of a JSON array.
func elements(text []byte) (list []string, ok bool) {
	var all []json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, false
	}
	for _, one := range all {
		list = append(list, string(one))
	}
	return list, true
}

// telnet sends lines, and prints what is answered until the connection is closed.
func (r *run) telnet(s *Step) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := r.place.Network().DialContext(ctx, "tcp", r.address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline)
	// A connection in memory has no buffer, and the gateway may answer before it has read all.
	go io.WriteString(conn, joined(s.Input)+"exit\n")
	text, err := io.ReadAll(conn)
	return string(text), err
}
