package httpapi

import (
	"errors"
	"net/http"

	"downpour/gateway/metadata/meta"
	"downpour/gateway/uid"
	"downpour/pushdown/rpc/auth"
)

// uidMetaBody is a UIDMeta as clients send it.
type uidMetaBody struct {
	UID         string            `json:"uid"`
	Type        string            `json:"type"`
	DisplayName *string           `json:"displayName"`
	Description *string           `json:"description"`
	Notes       *string           `json:"notes"`
	Created     *integer          `json:"created"`
	Custom      map[string]scalar `json:"custom"`
}

// uidMeta reads and changes what is said of a name.
// Source: UniqueIdRpc.handleUIDMeta.
func (a *API) uidMeta(w http.ResponseWriter, r *http.Request) error {
	method, err := apiMethod(r)
	if err != nil {
		return err
	}
	a.flushMeta(r.Context())
	switch method {
	case http.MethodGet:
		return a.getUIDMeta(w, r)
	case http.MethodPost, http.MethodPut:
		return a.changeUIDMeta(w, r, method == http.MethodPut)
	case http.MethodDelete:
		return a.deleteUIDMeta(w, r)
	}
	return methodNotAllowed(method)
}

func (a *API) getUIDMeta(w http.ResponseWriter, r *http.Request) error {
	in, err := uidMetaParameters(r)
	if err != nil {
		return err
	}
	m, err := a.Meta.UIDMeta(r.Context(), in.Kind, in.UID)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, m)
}

// uidMetaParameters reads a UIDMeta from the request line. A wrong type is
// answered with status 500, as there.
func uidMetaParameters(r *http.Request) (c meta.UIDChange, err error) {
	text, err := requiredValue(r, "uid")
	if err != nil {
		return c, err
	}
	kind, err := requiredValue(r, "type")
	if err != nil {
		return c, err
	}
	if c.Kind, err = meta.ParseKind(kind); err != nil {
		return c, broken("%v", err)
	}
	if c.UID, err = hexUID(text); err != nil {
		return c, broken("%v", err)
	}
	c.DisplayName, c.Description, c.Notes = given(r, "display_name"), given(r, "description"), given(r, "notes")
	return c, nil
}

// uidMetaChange reads a UIDMeta from the body or the request line.
func uidMetaChange(w http.ResponseWriter, r *http.Request) (c meta.UIDChange, err error) {
	body, err := readBody(w, r)
	if err != nil {
		return c, err
	}
	if len(body) == 0 {
		return uidMetaParameters(r)
	}
	var in uidMetaBody
	if err := parseContent(body, &in); err != nil {
		return c, err
	}
	if in.Type != "" {
		if c.Kind, err = meta.ParseKind(in.Type); err != nil {
			return c, &apiError{Code: http.StatusBadRequest, Message: "Unable to parse the given JSON", Details: err.Error()}
		}
	}
	switch {
	case in.UID == "":
		return c, errMissingUID
	case in.Type == "":
		return c, errMissingType
	}
	if c.UID, err = hexUID(in.UID); err != nil {
		return c, bad("%v", err)
	}
	c.DisplayName, c.Description, c.Notes, c.Created, c.Custom = in.DisplayName, in.Description, in.Notes, in.Created.pointer(), texts(in.Custom)
	return c, nil
}

// Refusals of a body. Source: UIDMeta.syncToStorage.
var (
	errMissingUID  = &apiError{Code: http.StatusBadRequest, Message: "Missing UID", Details: "Missing UID"}
	errMissingType = &apiError{Code: http.StatusBadRequest, Message: "Missing type", Details: "Missing type"}
)

func (a *API) changeUIDMeta(w http.ResponseWriter, r *http.Request, overwrite bool) error {
	change, err := uidMetaChange(w, r)
	if err != nil {
		return err
	}
	if err := a.mayChange(w, r, auth.Write); err != nil {
		return err
	}
	m, err := a.Meta.ChangeUIDMeta(r.Context(), change, overwrite)
	return a.answerChange(w, r, "UIDMeta", m, err)
}

// answerChange answers with what is stored after a change; 304 if there was
// nothing to change.
func (a *API) answerChange(w http.ResponseWriter, r *http.Request, what string, now any, err error) error {
	switch {
	case errors.Is(err, meta.ErrNoChange):
		w.WriteHeader(http.StatusNotModified)
		return nil
	case errors.Is(err, meta.ErrConflict):
		return &apiError{Code: http.StatusInternalServerError, Message: "Failed to save the " + what + " to storage", Details: meta.ErrConflict.Error()}
	case err != nil:
		return err
	}
	return writeJSON(w, r, http.StatusOK, now)
}

func (a *API) deleteUIDMeta(w http.ResponseWriter, r *http.Request) error {
	change, err := uidMetaChange(w, r)
	if err == errMissingUID || err == errMissingType {
		return &apiError{Code: http.StatusBadRequest, Message: "Unable to delete UIDMeta information", Details: err.Error()}
	}
	if err != nil {
		return err
	}
	if err := a.mayChange(w, r, auth.Write); err != nil {
		return err
	}
	if err := a.Meta.DeleteUIDMeta(r.Context(), change.Kind, change.UID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// notFoundName words a name that has no UID as the routes of metadata do.
func notFoundName(err error, message string) error {
	var unknown *uid.NoSuchNameError
	if errors.As(err, &unknown) {
		return &apiError{Code: http.StatusNotFound, Message: message, Details: err.Error()}
	}
	return err
}
