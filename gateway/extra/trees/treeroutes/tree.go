package treeroutes

import (
	"net/http"
	"strings"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/extra/trees/tree"
)

// treeRequest is a change of a tree as clients send it, or a request for one or all.
type treeRequest struct {
	tree.Change
	definition bool // delete the definition, too
}

// trees handles /api/tree: it reads, makes, changes and deletes trees.
// Source: TreeRpc.handleTree.
func (h *Handlers) trees(w http.ResponseWriter, r *http.Request) error {
	in, err := h.parseTree(w, r)
	if err != nil {
		return err
	}
	method, err := httpio.Method(r)
	if err != nil {
		return err
	}
	switch method {
	case http.MethodGet:
		return h.getTree(w, r, in.ID)
	case http.MethodPost, http.MethodPut, http.MethodDelete:
	default:
		return errVerb
	}

	if err := h.mayChange(w, r); err != nil {
		return err
	}
	if method == http.MethodDelete {
		return h.deleteTree(w, r, in)
	}
	// As in OpenTSDB, POST and PUT alike change a tree that is named, and make one otherwise.
	var t *tree.Tree
	if in.ID > 0 {
		if err := tree.CheckID(in.ID); err != nil {
			return err
		}
		t, err = h.Forest.Change(r.Context(), in.Change, method == http.MethodPut)
	} else {
		t, err = h.Forest.Create(r.Context(), in.Change)
	}
	if err != nil {
		return err
	}
	return httpio.WriteJSON(w, r, http.StatusOK, t)
}

// getTree answers with one tree, or with all if the id is 0.
func (h *Handlers) getTree(w http.ResponseWriter, r *http.Request, id int) error {
	if id == 0 {
		all, err := h.Forest.Trees(r.Context())
		if err != nil {
			return err
		}
		return httpio.WriteJSON(w, r, http.StatusOK, all)
	}

	t, err := h.Forest.Tree(r.Context(), id)
	if err != nil {
		return err
	}
	return httpio.WriteJSON(w, r, http.StatusOK, t)
}

// deleteTree deletes the branches of a tree, and its definition too if that is requested.
func (h *Handlers) deleteTree(w http.ResponseWriter, r *http.Request, in treeRequest) error {
	// A tree that does not exist is a 404.
	if _, err := h.Forest.Tree(r.Context(), in.ID); err != nil {
		return err
	}
	if err := h.Forest.Delete(r.Context(), in.ID, in.definition); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// parseTree reads a request for trees.
func (h *Handlers) parseTree(w http.ResponseWriter, r *http.Request) (in treeRequest, err error) {
	body, err := httpio.ReadBody(w, r)
	if err != nil {
		return in, err
	}
	if len(body) > 0 {
		return parseTreeBody(body)
	}

	if in.ID, err = treeID(r); err != nil {
		return in, err
	}
	in.Name, in.Description, in.Notes = httpio.LastValue(r, "name"), httpio.LastValue(r, "description"),
		httpio.LastValue(r, "notes")
	in.Created = h.Now().Unix() // of a new tree; one made by JSON has none, as in OpenTSDB
	for name, to := range map[string]**bool{"strict_match": &in.StrictMatch, "enabled": &in.Enabled,
		"store_failures": &in.StoreFailures} {
		if text := httpio.OptionalValue(r, name); text != nil {
			*to = truth(*text)
		}
	}
	in.definition = *truth(httpio.LastValue(r, "definition"))
	return in, nil
}

// parseTreeBody reads a body: keys in any case, values as texts, numbers or booleans, and
// null is not given. Rules are none of them, so a tree that was read and is sent back with
// its rules is refused, as there. Source: HttpJsonSerializer.parseTreeV1.
func parseTreeBody(body []byte) (in treeRequest, err error) {
	var fields map[string]*string
	if err := httpio.ParseJSON(body, &fields); err != nil {
		return in, err
	}
	for key, value := range fields {
		if value == nil {
			continue
		}
		text := *value
		switch strings.ToLower(key) {
		case "treeid":
			if in.ID, err = number(text, "Unable to parse 'tree' value"); err != nil {
				return in, err
			}
		case "name":
			in.Name = text
		case "description":
			in.Description = text
		case "notes":
			in.Notes = text
		case "enabled":
			in.Enabled = truth(text)
		case "strictmatch":
			in.StrictMatch = truth(text)
		case "storefailures":
			in.StoreFailures = truth(text)
		case "definition":
			in.definition = *truth(text)
		}
	}
	return in, nil
}

// truth reads a boolean: what is not true is false.
func truth(text string) *bool {
	is := strings.EqualFold(text, "true")
	return &is
}
