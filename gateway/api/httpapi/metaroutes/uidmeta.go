package metaroutes

import (
	"errors"
	"net/http"

	"downpour/encoding"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/metadata/meta"
	"downpour/pushdown/rpc/auth"
)

// uidMetaBody is a UIDMeta as clients send it.
type uidMetaBody struct {
	UID         string            `json:"uid"`
	Type        string            `json:"type"`
	DisplayName newText           `json:"displayName"`
	Description newText           `json:"description"`
	Notes       newText           `json:"notes"`
	Created     *int64            `json:"created"`
	Custom      map[string]string `json:"custom"`
}

// uidMeta handles /api/uid/uidmeta: it reads, changes and deletes the UIDMeta of a
// name.
// Source: UniqueIdRpc.handleUIDMeta.
func (h *Handlers) uidMeta(w http.ResponseWriter, r *http.Request) error {
	method, err := httpio.Method(r)
	if err != nil {
		return err
	}
	ctx, cancel := h.timeout(r)
	defer cancel()
	r = r.WithContext(ctx)
	if err := h.AwaitRecorded(ctx); err != nil { // a name that was just put has its UIDMeta then
		return err
	}
	switch method {
	case http.MethodGet:
		return h.getUIDMeta(w, r)
	case http.MethodPost, http.MethodPut:
		return h.changeUIDMeta(w, r, method == http.MethodPut)
	case http.MethodDelete:
		return h.deleteUIDMeta(w, r)
	}
	return httpio.MethodNotAllowed(method)
}

// getUIDMeta answers with the UIDMeta of a UID.
func (h *Handlers) getUIDMeta(w http.ResponseWriter, r *http.Request) error {
	in, err := uidMetaParameters(r)
	if err != nil {
		return err
	}
	m, err := h.Meta.UIDMeta(r.Context(), in.Kind, in.UID)
	if err != nil {
		return err
	}
	return httpio.WriteJSON(w, r, http.StatusOK, m)
}

// uidMetaParameters reads a change from the parameters. A wrong type is answered with
// status 500, as OpenTSDB does.
func uidMetaParameters(r *http.Request) (c meta.UIDChange, err error) {
	text, err := httpio.RequiredValue(r, "uid")
	if err != nil {
		return c, err
	}
	kind, err := httpio.RequiredValue(r, "type")
	if err != nil {
		return c, err
	}
	if c.Kind, err = meta.ParseKind(kind); err != nil {
		return c, httpio.InternalError("%v", err)
	}
	if c.UID, err = encoding.ParseHexUID(text); err != nil {
		return c, httpio.InternalError("%v", err)
	}
	c.DisplayName, c.Description, c.Notes = newValue(r, "display_name"), newValue(r, "description"),
		newValue(r, "notes")
	return c, nil
}

// uidMetaChange reads a change from the body, or from the parameters if there is no
// body.
func uidMetaChange(w http.ResponseWriter, r *http.Request) (c meta.UIDChange, err error) {
	body, err := httpio.ReadBody(w, r)
	if err != nil {
		return c, err
	}
	if len(body) == 0 {
		return uidMetaParameters(r)
	}

	var in uidMetaBody
	if err := httpio.ParseJSON(body, &in); err != nil {
		return c, err
	}
	// OpenTSDB reads the type with the JSON, and so before it notices a missing UID.
	if in.Type != "" {
		if c.Kind, err = meta.ParseKind(in.Type); err != nil {
			return c, &httpio.Error{
				Code:    http.StatusBadRequest,
				Message: "Unable to parse the given JSON",
				Details: err.Error(),
			}
		}
	}

	switch {
	case in.UID == "":
		return c, errMissingUID
	case in.Type == "":
		return c, errMissingType
	}

	if c.UID, err = encoding.ParseHexUID(in.UID); err != nil {
		return c, httpio.BadRequest("%v", err)
	}
	c.DisplayName, c.Description, c.Notes, c.Created, c.Custom = in.DisplayName.to, in.Description.to, in.Notes.to,
		in.Created, in.Custom
	return c, nil
}

// errMissingUID and errMissingType are returned when a body has no UID or no type.
// Source: UIDMeta.syncToStorage.
var (
	errMissingUID  = &httpio.Error{Code: http.StatusBadRequest, Message: "Missing UID", Details: "Missing UID"}
	errMissingType = &httpio.Error{Code: http.StatusBadRequest, Message: "Missing type", Details: "Missing type"}
)

// changeUIDMeta changes the UIDMeta of a UID; overwrite replaces it instead.
func (h *Handlers) changeUIDMeta(w http.ResponseWriter, r *http.Request, overwrite bool) error {
	change, err := uidMetaChange(w, r)
	if err != nil {
		return err
	}
	if err := h.Guard.MayChange(w, r, auth.Write); err != nil {
		return err
	}
	m, err := h.Meta.ChangeUIDMeta(r.Context(), change, overwrite)
	return h.answerChange(w, r, "UIDMeta", m, err)
}

// answerChange answers with what is stored after a change, or with 304 if the change
// changes nothing.
func (h *Handlers) answerChange(w http.ResponseWriter, r *http.Request, what string, now any, err error) error {
	switch {
	case errors.Is(err, meta.ErrNoChange):
		w.WriteHeader(http.StatusNotModified)
		return nil
	case errors.Is(err, meta.ErrConflict):
		return &httpio.Error{
			Code:    http.StatusInternalServerError,
			Message: "Failed to save the " + what + " to storage",
			Details: meta.ErrConflict.Error(),
		}
	case err != nil:
		return err
	}
	return httpio.WriteJSON(w, r, http.StatusOK, now)
}

// deleteUIDMeta deletes the UIDMeta of a UID and answers with 204.
func (h *Handlers) deleteUIDMeta(w http.ResponseWriter, r *http.Request) error {
	change, err := uidMetaChange(w, r)
	if err == errMissingUID || err == errMissingType {
		return &httpio.Error{
			Code:    http.StatusBadRequest,
			Message: "Unable to delete UIDMeta information",
			Details: err.Error(),
		}
	}
	if err != nil {
		return err
	}
	if err := h.Guard.MayChange(w, r, auth.Write); err != nil {
		return err
	}
	if err := h.Meta.DeleteUIDMeta(r.Context(), change.Kind, change.UID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
