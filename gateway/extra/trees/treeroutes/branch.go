package treeroutes

import (
	"net/http"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/extra/trees/tree"
)

// branch handles /api/tree/branch: it answers with a branch and what is right below it. The
// branch is given by its id, or is the root of a tree. Source: TreeRpc.handleBranch.
func (h *Handlers) branch(w http.ResponseWriter, r *http.Request) error {
	method, err := httpio.Method(r)
	if err != nil {
		return err
	}
	if method != http.MethodGet {
		return errVerb
	}

	// As in OpenTSDB, a bad treeid is an error also where the branch is given.
	id, err := treeID(r)
	if err != nil {
		return err
	}
	var key []byte
	if text := httpio.LastValue(r, "branch"); text != "" {
		if key, err = tree.ParseBranchID(text); err != nil {
			return err
		}
	} else {
		if id < 1 {
			return httpio.BadRequest("Missing or invalid branch and tree IDs")
		}
		if id > tree.MaxID {
			return httpio.BadRequest("Missing or invalid tree ID")
		}
		key = tree.Key(id)
	}

	if err := h.flush(r.Context()); err != nil {
		return err
	}
	b, err := h.Forest.Branch(r.Context(), key)
	if err != nil {
		return err
	}
	return httpio.WriteJSON(w, r, http.StatusOK, b)
}
