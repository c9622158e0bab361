package treeroutes

import (
	"fmt"
	"net/http"

	"downpour/encoding"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/extra/trees/forest"
	"downpour/gateway/extra/trees/tree"
	"downpour/gateway/jackson"
	"downpour/gateway/java"
	"downpour/pushdown/process/memory"
)

// maxTSUIDs bounds the series of one request.
const maxTSUIDs = 1000

// seriesRequest names a tree and some series of it.
type seriesRequest struct {
	id     int
	tsuids []string // as given, each once; nil if none is given
	bytes  [][]byte
}

// test handles /api/tree/test: it answers with what a tree would do with some series.
// Source: TreeRpc.handleTest.
func (h *Handlers) test(w http.ResponseWriter, r *http.Request) error {
	in, err := parseSeries(w, r)
	if err != nil {
		return err
	}
	// The error does not matter to series that are found, so it is kept until one is not.
	flushErr := h.flush(r.Context())
	// The tree, its series, the verb: the order of OpenTSDB's checks.
	t, err := h.Forest.Tree(r.Context(), in.id)
	if err != nil {
		return err
	}
	if len(in.tsuids) == 0 {
		return httpio.BadRequest("Missing or empty TSUID list")
	}
	if err := checkReading(r); err != nil {
		return err
	}

	compiled, err := tree.Compile(*t)
	if err != nil {
		return err
	}

	// In one step and first: requests that took their memory bit by bit would wait for each other
	// while they hold some.
	left := trialsBytes + int64(len(in.tsuids))*trialShare
	if err := memory.Reserve(r.Context(), left); err != nil {
		return err
	}

	out := make(map[string]*forest.Trial, len(in.tsuids))
	for i, tsuid := range in.tsuids {
		if err := r.Context().Err(); err != nil {
			return err
		}
		trial, err := h.Forest.Try(r.Context(), compiled, in.bytes[i])
		if err != nil {
			return err
		}
		if trial.Meta == nil && flushErr != nil { // its TSMeta may be among what could not be stored
			return flushErr
		}
		if left -= trialBytes(trial); left < 0 {
			return &httpio.Error{
				Code: http.StatusRequestEntityTooLarge,
				Message: fmt.Sprintf("The trials take more than %d bytes; ask for fewer TSUIDs, or for one",
					trialsBytes+len(in.tsuids)*trialShare),
			}
		}
		out[tsuid] = trial
	}
	return httpio.WriteJSON(w, r, http.StatusOK, out)
}

// The memory of all trials of a request: what one may take, see tree.MaxMessages and
// tree.MaxPath, and a share for each, which is more than usual ones take.
const (
	trialsBytes = 8 << 20
	trialShare  = 32 << 10
)

// trialBytes is about the memory of a trial. Each text counts twice, plain and as JSON.
// Each branch has all names of the way to it, and at most one branch below it.
func trialBytes(t *forest.Trial) int64 {
	n := 4000
	for _, m := range t.Messages {
		n += 2 * (50 + len(m))
	}
	for b := t.Branch; b != nil; {
		for _, name := range b.Path {
			n += 2 * (50 + len(name))
		}
		if len(b.Branches) == 0 {
			break
		}
		b = b.Branches[0]
	}
	return int64(n)
}

// failed handles /api/tree/collisions and /api/tree/notmatched: it answers with the series
// that a tree has left out. Source: TreeRpc.handleCollisionNotMatched.
func (h *Handlers) failed(list forest.Failures) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		in, err := parseSeries(w, r)
		if err != nil {
			return err
		}
		if err := checkReading(r); err != nil {
			return err
		}

		if err := h.flush(r.Context()); err != nil {
			return err
		}
		out, err := h.Forest.Failed(r.Context(), list, in.id, in.bytes)
		if err != nil {
			return err
		}
		return httpio.WriteJSON(w, r, http.StatusOK, out)
	}
}

// checkReading refuses a verb by which nothing is read.
func checkReading(r *http.Request) error {
	switch method, err := httpio.Method(r); method {
	case http.MethodGet, http.MethodPost, http.MethodPut:
		return err
	case "": // method_override names no verb
		return err
	}
	return errVerb
}

// parseSeries reads a request from the body, or from the parameters if there is no body.
func parseSeries(w http.ResponseWriter, r *http.Request) (in seriesRequest, err error) {
	body, err := httpio.ReadBody(w, r)
	if err != nil {
		return in, err
	}
	var given []string
	if len(body) > 0 {
		in.id, given, err = parseSeriesBody(body)
	} else {
		in.id, err = requiredTreeID(r)
		given = java.Split(httpio.LastValue(r, "tsuids"))
	}
	if err != nil {
		return in, err
	}

	if len(given) > maxTSUIDs {
		return in, &httpio.Error{
			Code:    http.StatusRequestEntityTooLarge,
			Message: fmt.Sprintf("More than %d TSUIDs", maxTSUIDs),
		}
	}
	seen := make(map[string]bool, len(given))
	for _, text := range given {
		if seen[text] {
			continue
		}
		seen[text] = true
		tsuid, err := encoding.ParseHexUID(text)
		if err != nil {
			return in, err
		}
		in.tsuids, in.bytes = append(in.tsuids, text), append(in.bytes, tsuid)
	}
	return in, nil
}

// errNoList refuses series that are no list of texts.
var errNoList = httpio.BadRequest("Unable to convert the given data to a list")

// parseSeriesBody reads {"treeId":1,"tsuids":["…"]}.
func parseSeriesBody(body []byte) (id int, tsuids []string, err error) {
	var in struct {
		TreeID treeNumber `json:"treeId"`
		TSUIDs textList   `json:"tsuids"`
	}
	if err := httpio.ParseJSON(body, &in); err != nil {
		return 0, nil, err
	}
	if !in.TreeID.given {
		return 0, nil, errNoTree
	}
	return int(in.TreeID.id), in.TSUIDs, nil
}

var errNoTree = httpio.BadRequest("Missing or invalid Tree ID")

// treeNumber is the number of a tree. It may not be a text or have a fraction: OpenTSDB casts it,
// and answers 500 if that fails.
type treeNumber struct {
	id    int32
	given bool
}

// UnmarshalJackson reads the number.
func (n *treeNumber) UnmarshalJackson(_ *jackson.Reader, t jackson.Token) (err error) {
	if n.given = t.Kind == jackson.Integer; !n.given && t.Kind != jackson.Null {
		return errNoTree
	}
	if n.id, err = t.AsInt(); err != nil {
		return errNoTree
	}
	return nil
}

// textList is a list of texts, which may not be numbers: OpenTSDB casts them.
type textList []string

// UnmarshalJackson reads the list.
func (l *textList) UnmarshalJackson(r *jackson.Reader, t jackson.Token) error {
	if *l = nil; t.Kind == jackson.Null {
		return nil
	}
	if t.Kind != jackson.List {
		return errNoList
	}
	return r.EachElement(t, func(t jackson.Token) error {
		if *l = append(*l, t.Text); t.Kind != jackson.Text {
			return errNoList
		}
		return nil
	})
}
