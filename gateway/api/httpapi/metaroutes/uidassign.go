package metaroutes

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"downpour/encoding"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/java"
	"downpour/gateway/metadata/meta"
	"downpour/gateway/uid"
	"downpour/pushdown/rpc/auth"
)

// uidTypes are the types of names that assign and rename accept.
var uidTypes = []string{"metric", "tagk", "tagv"}

// otherUID refuses all other routes below /api/uid. Source: UniqueIdRpc.execute.
func (h *Handlers) otherUID(http.ResponseWriter, *http.Request) error {
	return &httpio.Error{Code: http.StatusNotImplemented, Message: "Other UID endpoints have not been implemented yet"}
}

// uidAssign handles /api/uid/assign: it assigns UIDs to names that have none.
// Source: UniqueIdRpc.handleAssign.
func (h *Handlers) uidAssign(w http.ResponseWriter, r *http.Request) error {
	names, err := assignRequest(w, r)
	if err != nil {
		return err
	}
	if err := h.Guard.MayChange(w, r, auth.Write); err != nil {
		return err
	}
	if len(names) == 0 {
		return httpio.BadRequest("Missing values to assign UIDs")
	}

	answer := map[string]map[string]string{}
	code := http.StatusOK
	for kind, list := range names {
		given, refused, err := h.assignAll(r.Context(), kind, list)
		if err != nil {
			return err
		}
		answer[kind] = given
		if len(refused) > 0 {
			answer[kind+"_errors"] = refused
			code = http.StatusBadRequest
		}
	}
	return httpio.WriteJSON(w, r, code, answer)
}

// assignRequest reads the names that are to get UIDs, by kind: lists in the body, or
// parameters whose names are separated by commas.
func assignRequest(w http.ResponseWriter, r *http.Request) (map[string][]string, error) {
	names := map[string][]string{}
	switch r.Method {
	case http.MethodGet:
		for _, kind := range uidTypes {
			if list := java.Split(httpio.LastValue(r, kind)); len(list) > 0 {
				names[kind] = list
			}
		}
		return names, nil
	case http.MethodPost:
		body, err := httpio.ReadBody(w, r)
		if err != nil {
			return nil, err
		}
		err = httpio.ParseJSON(body, &names)
		return names, err
	}
	return nil, httpio.MethodNotAllowed(r.Method)
}

// assignAll assigns UIDs to names of one type. A name that is refused does not stop
// the others. The error is the store's.
func (h *Handlers) assignAll(ctx context.Context, kindName string,
	names []string) (given, refused map[string]string, err error) {
	given, refused = map[string]string{}, map[string]string{}
	for _, name := range names {
		u, err := h.assignOne(ctx, kindName, name)
		var text nameError
		switch {
		case errors.As(err, &text):
			refused[name] = text.Error()
		case err != nil:
			return nil, nil, err
		default:
			given[name] = u.String()
		}
	}
	return given, refused, nil
}

// nameError is the error of one name, which is refused.
type nameError struct{ error }

// assignOne assigns a UID to a name, and refuses a name that has one.
// Source: TSDB.assignUid.
func (h *Handlers) assignOne(ctx context.Context, kindName, name string) (encoding.UID, error) {
	// As in OpenTSDB, the name is checked before the type.
	if err := h.storable(kindName, name); err != nil {
		return nil, nameError{err}
	}
	kind, ok := uidKind(kindName)
	if !ok {
		return nil, nameError{errors.New("Unknown type name")}
	}

	old, err := h.Names.Resolve(ctx, kind, name)
	var unknown *uid.NoSuchNameError
	switch {
	case err == nil:
		return nil, nameError{errors.New("Name already exists with UID: " + old.String())}
	case !errors.As(err, &unknown):
		return nil, err
	}

	u, err := h.Names.Assign(ctx, kind, name)
	var long *uid.NameTooLongError
	if errors.As(err, &long) {
		return nil, nameError{long}
	}
	return u, err
}

// uidKind reads metric, tagk or tagv in any case.
func uidKind(text string) (encoding.UIDKind, bool) {
	kind, err := meta.ParseKind(text)
	// ParseKind also reads "metrics", which these two routes refuse.
	return kind, err == nil && !strings.EqualFold(text, "metrics")
}

// storable returns an error for names that OpenTSDB refuses, and for those with
// characters that it would replace when it stores them.
func (h *Handlers) storable(what, name string) error {
	if err := encoding.ValidateName(what, name, h.Allowed...); err != nil {
		return err
	}
	_, err := encoding.AppendName(nil, name)
	return err
}

// renameRequest is a request to rename one name.
type renameRequest struct{ kind, from, to string }

// uidRename handles /api/uid/rename: it gives a UID another name. If collectors keep sending the
// old name, that gets a new UID, and their points new series.
// Source: UniqueIdRpc.handleRename.
func (h *Handlers) uidRename(w http.ResponseWriter, r *http.Request) error {
	in, err := parseRename(w, r)
	if err != nil {
		return err
	}
	if err := h.Guard.MayChange(w, r, auth.Admin); err != nil {
		return err
	}

	err = h.rename(r.Context(), in)
	var refused nameError
	switch {
	case errors.As(err, &refused):
		return httpio.WriteJSON(w, r, http.StatusBadRequest,
			map[string]string{"result": "false", "error": refused.Error()})
	case err != nil:
		return err
	}
	return httpio.WriteJSON(w, r, http.StatusOK, map[string]string{"result": "true"})
}

// parseRename reads {"metric":"old","name":"new"}, with metric, tagk or tagv, from the
// body, or the parameters of the same names.
func parseRename(w http.ResponseWriter, r *http.Request) (in renameRequest, err error) {
	values := map[string]string{}
	switch r.Method {
	case http.MethodGet:
		for _, name := range append([]string{"name"}, uidTypes...) {
			if v := httpio.LastValue(r, name); v != "" {
				values[name] = v
			}
		}
	case http.MethodPost:
		body, err := httpio.ReadBody(w, r)
		if err == nil {
			err = httpio.ParseJSON(body, &values)
		}
		if err != nil {
			return in, err
		}
	default:
		// UniqueIdRpc.handleRename has no blank where all others have one.
		return in, &httpio.Error{Code: http.StatusMethodNotAllowed, Message: "Method not allowed",
			Details: "The HTTP method[" + r.Method + "] is not permitted for this endpoint"}
	}

	// Whatever else the body names is the kind: rename refuses an unknown one.
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case name == "name":
			in.to = values[name]
		case in.kind != "":
			return in, httpio.BadRequest("One UID can be renamed at a time, got those of a %s and a %s", in.kind, name)
		default:
			in.kind, in.from = name, values[name]
		}
	}

	if in.kind == "" || in.from == "" || in.to == "" {
		return in, httpio.BadRequest("Missing necessary values to rename UID")
	}
	return in, nil
}

// rename checks both names and renames. Its error is a nameError if the request is at
// fault.
func (h *Handlers) rename(ctx context.Context, in renameRequest) error {
	// As in OpenTSDB, the names are checked before the type.
	for _, name := range []string{in.from, in.to} {
		if err := h.storable(in.kind, name); err != nil {
			return nameError{err}
		}
	}
	kind, ok := uidKind(in.kind)
	if !ok {
		return nameError{errors.New("Unknown type name")}
	}

	err := h.Names.Rename(ctx, kind, in.from, in.to)
	var unknown *uid.NoSuchNameError
	var refused *uid.RefusedError
	var long *uid.NameTooLongError
	switch {
	case errors.As(err, &unknown):
		return nameError{errors.New("Name(\"" + in.from + "\") does not exist")}
	case errors.As(err, &refused):
		return nameError{refused}
	case errors.As(err, &long):
		return nameError{long}
	}
	return err
}
