package metaroutes

import (
	"net/http"

	"downpour/encoding"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/java"
	"downpour/gateway/metadata/meta"
	"downpour/pushdown/rpc/auth"
)

// tsMetaBody is a TSMeta as clients send it.
type tsMetaBody struct {
	TSUID       string            `json:"tsuid"`
	DisplayName newText           `json:"displayName"`
	Description newText           `json:"description"`
	Notes       newText           `json:"notes"`
	Created     *int64            `json:"created"`
	Custom      map[string]string `json:"custom"`
	Units       newText           `json:"units"`
	DataType    newText           `json:"dataType"`
	Retention   *int32            `json:"retention"`
	Max         *float64          `json:"max"`
	Min         *float64          `json:"min"`
}

// tsMeta handles /api/uid/tsmeta: it reads, changes and deletes the TSMeta of a
// series.
// Source: UniqueIdRpc.handleTSMeta.
func (h *Handlers) tsMeta(w http.ResponseWriter, r *http.Request) error {
	method, err := httpio.Method(r)
	if err != nil {
		return err
	}
	ctx, cancel := h.timeout(r)
	defer cancel()
	r = r.WithContext(ctx)
	if err := h.AwaitRecorded(ctx); err != nil { // a series that was just put has its TSMeta then
		return err
	}
	switch method {
	case http.MethodGet:
		if r.URL.Query().Has("tsuid") {
			return h.getTSMeta(w, r)
		}
		return h.listTSMeta(w, r)
	case http.MethodPost, http.MethodPut:
		return h.changeTSMeta(w, r, method == http.MethodPut)
	case http.MethodDelete:
		return h.deleteTSMeta(w, r)
	}
	return httpio.MethodNotAllowed(method)
}

// getTSMeta answers with the TSMeta of the series whose TSUID is given. A TSUID that
// cannot be read is status 500.
func (h *Handlers) getTSMeta(w http.ResponseWriter, r *http.Request) error {
	tsuid, err := encoding.ParseHexUID(httpio.LastValue(r, "tsuid"))
	if err != nil {
		return httpio.InternalError("%v", err)
	}
	m, err := h.Meta.TSMeta(r.Context(), tsuid)
	if err != nil {
		return err
	}
	if m == nil {
		return &httpio.Error{Code: http.StatusNotFound, Message: "Could not find Timeseries meta data"}
	}
	return httpio.WriteJSON(w, r, http.StatusOK, m)
}

// listTSMeta answers with the TSMeta of all series of a metric that have the given
// tags.
func (h *Handlers) listTSMeta(w http.ResponseWriter, r *http.Request) error {
	metric, tags, err := seriesParameter(r)
	if err != nil {
		return err
	}
	keys, filter, err := h.Lookup.MetaRows(r.Context(), metric, tags)
	if err != nil {
		return nameNotFound(err, "Unable to find one of the UIDs")
	}
	list, err := h.Meta.TSMetas(r.Context(), keys, filter)
	if err != nil {
		return err
	}
	return httpio.WriteJSON(w, r, http.StatusOK, list)
}

// seriesParameter reads the parameter m, metric{tagk=tagv,…}.
func seriesParameter(r *http.Request) (metric string, tags map[string]string, err error) {
	text, err := httpio.RequiredValue(r, "m")
	if err != nil {
		return "", nil, err
	}
	if metric, tags, err = parseSeries(text); err != nil {
		return "", nil, &httpio.Error{Code: http.StatusBadRequest, Message: err.Error(), Details: err.Error()}
	}
	return metric, tags, nil
}

// tsMetaChange reads a change from the body, or from the parameters if there is no
// body.
func tsMetaChange(w http.ResponseWriter, r *http.Request) (tsuid string, c meta.TSChange, err error) {
	body, err := httpio.ReadBody(w, r)
	if err != nil {
		return "", c, err
	}
	if len(body) == 0 {
		return tsMetaParameters(r)
	}

	var in tsMetaBody
	if err := httpio.ParseJSON(body, &in); err != nil {
		return "", c, err
	}
	c = meta.TSChange{
		DisplayName: in.DisplayName.to,
		Description: in.Description.to,
		Notes:       in.Notes.to,
		Units:       in.Units.to,
		DataType:    in.DataType.to,
		Created:     in.Created,
		Custom:      in.Custom,
		Max:         in.Max,
		Min:         in.Min,
	}
	if in.Retention != nil {
		days := int(*in.Retention)
		c.Retention = &days
	}
	return in.TSUID, c, nil
}

// tsMetaParameters reads a change from the parameters. It reads max and min as
// 32-bit floats, as OpenTSDB does.
func tsMetaParameters(r *http.Request) (tsuid string, c meta.TSChange, err error) {
	c = meta.TSChange{
		DisplayName: newValue(r, "display_name"),
		Description: newValue(r, "description"),
		Notes:       newValue(r, "notes"),
		Units:       newValue(r, "units"),
		DataType:    newValue(r, "data_type"),
	}

	if text := httpio.LastValue(r, "retention"); text != "" {
		days, err := java.ParseInt(text)
		if err != nil {
			return "", c, httpio.BadRequest("Unable to parse 'retention' value")
		}
		n := int(days)
		c.Retention = &n
	}

	for name, to := range map[string]**float64{"max": &c.Max, "min": &c.Min} {
		text := httpio.LastValue(r, name)
		if text == "" {
			continue
		}
		short, err := java.ParseFloat(text)
		if err != nil {
			return "", c, httpio.BadRequest("Unable to parse '%s' value", name)
		}
		v := float64(short)
		*to = &v
	}
	return httpio.LastValue(r, "tsuid"), c, nil
}

// changeTSMeta changes the TSMeta of the series that is given by its TSUID, or by the
// parameter m if there is none. overwrite replaces it instead.
func (h *Handlers) changeTSMeta(w http.ResponseWriter, r *http.Request, overwrite bool) error {
	text, change, err := tsMetaChange(w, r)
	if err != nil {
		return err
	}
	if err := h.Guard.MayChange(w, r, auth.Write); err != nil {
		return err
	}
	if text == "" {
		return h.changeTSMetaByName(w, r, change, overwrite)
	}
	tsuid, err := encoding.ParseHexUID(text)
	if err != nil {
		return httpio.BadRequest("%v", err)
	}
	m, err := h.Meta.ChangeTSMeta(r.Context(), tsuid, change, overwrite)
	return h.answerChange(w, r, "TSMeta", m, err)
}

// changeTSMetaByName changes the TSMeta of the series that the parameter m names. With
// create=true it creates one if there is none.
func (h *Handlers) changeTSMetaByName(w http.ResponseWriter, r *http.Request, change meta.TSChange,
	overwrite bool) error {
	metric, tags, err := seriesParameter(r)
	if err != nil {
		return err
	}
	tsuid, err := h.Lookup.TSUID(r.Context(), metric, tags)
	if err != nil {
		return nameNotFound(err, "Unable to find one or more UIDs")
	}

	exists, err := h.Meta.HasTSMeta(r.Context(), tsuid)
	if err != nil {
		return err
	}
	var m *meta.TSMeta
	switch {
	case exists:
		m, err = h.Meta.ChangeTSMeta(r.Context(), tsuid, change, overwrite)
	case httpio.LastValue(r, "create") == "true":
		if m, err = h.Meta.CreateTSMeta(r.Context(), tsuid, change); err == nil && h.Described != nil {
			// The trees take the series in, as they do when a put has made a TSMeta.
			h.Described(r.Context(), tsuid)
		}
	default:
		return httpio.BadRequest("Could not find TSMeta, specify \"create=true\" to create a new one.")
	}
	return h.answerChange(w, r, "TSMeta", m, err)
}

// deleteTSMeta deletes the TSMeta of a series and answers with 204.
func (h *Handlers) deleteTSMeta(w http.ResponseWriter, r *http.Request) error {
	text, _, err := tsMetaChange(w, r)
	if err != nil {
		return err
	}
	if err := h.Guard.MayChange(w, r, auth.Write); err != nil {
		return err
	}
	tsuid, err := encoding.ParseHexUID(text)
	if err != nil {
		return &httpio.Error{
			Code:    http.StatusBadRequest,
			Message: "Unable to delete TSMeta information",
			Details: "Missing UID",
		}
	}
	if err := h.Meta.DeleteTSMeta(r.Context(), tsuid); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
