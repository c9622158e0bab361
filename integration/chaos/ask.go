package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"downpour/integration/compare"
	"downpour/integration/conformance"
)

// Outcome is what became of one question.
type Outcome struct {
	Kind   Kind
	Detail string // of a refusal its status, of a wrong answer the difference
}

// Kind of outcome.
type Kind uint8

const (
	// Equal is the recorded answer.
	Equal Kind = iota
	// Refused is an error that says that there is no answer now.
	Refused
	// Wrong is any other answer: the failure that must not be.
	Wrong
	// Silent is no answer at all: the gateway broke off or did not speak.
	Silent
)

// String names the kind.
func (k Kind) String() string {
	if k > Silent {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return [...]string{"equal", "refused", "wrong", "silent"}[k]
}

// refusals are the statuses that refuse clearly: time ran out, store not
// reachable, ranges missing.
var refusals = map[int]string{
	http.StatusRequestTimeout:     "408 deadline",
	http.StatusFailedDependency:   "424 store unreachable",
	http.StatusServiceUnavailable: "503 ranges missing",
}

// comparer is that of the conformance tests.
var comparer = compare.Comparer{MessageStart: true, Permits: []compare.Permit{{
	Path: compare.Path{"error", "details"}, Kinds: []compare.Kind{compare.Extra},
	Reason: "of errors only code and message were recorded",
}}}

// judge holds an HTTP answer against the recorded one. An error is the
// client's: nothing usable came.
func judge(q conformance.Query, status int, body []byte, err error) Outcome {
	if err != nil {
		return Outcome{Silent, err.Error()}
	}
	// What was recorded may be an error, too, so it is compared first.
	report, err := comparer.Answers(compare.Answer{Status: q.Status, Body: q.Response},
		compare.Answer{Status: status, Body: body})
	if err == nil && report.Equal() {
		return Outcome{Kind: Equal}
	}
	if name, ok := refusals[status]; ok {
		if explained(body, status) {
			return Outcome{Refused, name}
		}
		return Outcome{Wrong, fmt.Sprintf("status %d without a reason: %.200s", status, body)}
	}
	if err != nil {
		return Outcome{Wrong, fmt.Sprintf("status %d: %v", status, err)}
	}
	return Outcome{Wrong, fmt.Sprintf("%d differences, the first: %s (status %d, %.200s)",
		len(report.Differences), report.Differences[0], status, body)}
}

// explained reports whether a refusal is OpenTSDB's error object with the status
// and a message, and for 503 names what is missing.
func explained(body []byte, status int) bool {
	var e struct {
		Error struct {
			Code    int
			Message string
			Missing [][2]string
		}
	}
	if json.Unmarshal(body, &e) != nil || e.Error.Code != status || e.Error.Message == "" {
		return false
	}
	return status != http.StatusServiceUnavailable || len(e.Error.Missing) > 0
}

// ask puts one question to the gateway.
func (s *Site) ask(ctx context.Context, q conformance.Query) Outcome {
	a, err := s.post(ctx, "/"+strings.TrimPrefix(q.Path, "/"), string(q.Request))
	return judge(q, a.Status, a.Body, err)
}
