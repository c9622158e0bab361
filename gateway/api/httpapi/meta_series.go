package httpapi

import (
	"net/http"
	"strconv"

	"downpour/encoding"
	"downpour/gateway/metadata/meta"
	"downpour/pushdown/rpc/auth"
)

// tsMetaBody is a TSMeta as clients send it.
type tsMetaBody struct {
	TSUID       string               `json:"tsuid"`
	DisplayName *string              `json:"displayName"`
	Description *string              `json:"description"`
	Notes       *string              `json:"notes"`
	Created     *integer             `json:"created"`
	Custom      map[string]scalar    `json:"custom"`
	Units       *string              `json:"units"`
	DataType    *string              `json:"dataType"`
	Retention   *integer             `json:"retention"`
	Max         *encoding.JSONDouble `json:"max"`
	Min         *encoding.JSONDouble `json:"min"`
}

// tsMeta reads and changes what is said of a series.
// Source: UniqueIdRpc.handleTSMeta.
func (a *API) tsMeta(w http.ResponseWriter, r *http.Request) error {
	method, err := apiMethod(r)
	if err != nil {
		return err
	}
	a.flushMeta(r.Context())
	switch method {
	case http.MethodGet:
		if r.URL.Query().Has("tsuid") {
			return a.getTSMeta(w, r)
		}
		return a.listTSMeta(w, r)
	case http.MethodPost, http.MethodPut:
		return a.changeTSMeta(w, r, method == http.MethodPut)
	case http.MethodDelete:
		return a.deleteTSMeta(w, r)
	}
	return methodNotAllowed(method)
}

func (a *API) getTSMeta(w http.ResponseWriter, r *http.Request) error {
	tsuid, err := hexUID(lastValue(r, "tsuid"))
	if err != nil {
		return broken("%v", err)
	}
	m, err := a.Meta.TSMeta(r.Context(), tsuid)
	if err != nil {
		return err
	}
	if m == nil {
		return &apiError{Code: http.StatusNotFound, Message: "Could not find Timeseries meta data"}
	}
	return writeJSON(w, r, http.StatusOK, m)
}

// listTSMeta answers with all series of a metric that have some tags.
func (a *API) listTSMeta(w http.ResponseWriter, r *http.Request) error {
	text, err := requiredValue(r, "m")
	if err != nil {
		return err
	}
	metric, tags, err := parseSeries(text)
	if err != nil {
		return &apiError{Code: http.StatusBadRequest, Message: err.Error(), Details: err.Error()}
	}
	ctx, cancel := a.within(r)
	defer cancel()
	keys, filter, err := a.Find.MetaRows(ctx, metric, tags)
	if err != nil {
		return notFoundName(err, "Unable to find one of the UIDs")
	}
	list, err := a.Meta.TSMetas(ctx, keys, filter)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, list)
}

// tsMetaChange reads a TSMeta from the body or the request line.
func tsMetaChange(w http.ResponseWriter, r *http.Request) (tsuid string, c meta.TSChange, err error) {
	body, err := readBody(w, r)
	if err != nil {
		return "", c, err
	}
	if len(body) == 0 {
		return tsMetaParameters(r)
	}
	var in tsMetaBody
	if err := parseContent(body, &in); err != nil {
		return "", c, err
	}
	c = meta.TSChange{DisplayName: in.DisplayName, Description: in.Description, Notes: in.Notes, Units: in.Units, DataType: in.DataType,
		Created: in.Created.pointer(), Custom: texts(in.Custom), Max: (*float64)(in.Max), Min: (*float64)(in.Min)}
	if in.Retention != nil {
		days := int(*in.Retention)
		c.Retention = &days
	}
	return in.TSUID, c, nil
}

// tsMetaParameters reads a TSMeta from the request line. Limits of the data are
// read as floats of 32 bits, as there.
func tsMetaParameters(r *http.Request) (tsuid string, c meta.TSChange, err error) {
	c = meta.TSChange{DisplayName: given(r, "display_name"), Description: given(r, "description"), Notes: given(r, "notes"),
		Units: given(r, "units"), DataType: given(r, "data_type")}
	if text := lastValue(r, "retention"); text != "" {
		days, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return "", c, bad("Unable to parse 'retention' value")
		}
		n := int(days)
		c.Retention = &n
	}
	for name, to := range map[string]**float64{"max": &c.Max, "min": &c.Min} {
		text := lastValue(r, name)
		if text == "" {
			continue
		}
		v, err := strconv.ParseFloat(text, 32)
		if err != nil {
			return "", c, bad("Unable to parse '%s' value", name)
		}
		*to = &v
	}
	return lastValue(r, "tsuid"), c, nil
}

func (a *API) changeTSMeta(w http.ResponseWriter, r *http.Request, overwrite bool) error {
	text, change, err := tsMetaChange(w, r)
	if err != nil {
		return err
	}
	if err := a.mayChange(w, r, auth.Write); err != nil {
		return err
	}
	if text == "" {
		return a.changeTSMetaByName(w, r, change, overwrite)
	}
	tsuid, err := hexUID(text)
	if err != nil {
		return bad("%v", err)
	}
	m, err := a.Meta.ChangeTSMeta(r.Context(), tsuid, change, overwrite)
	return a.answerChange(w, r, "TSMeta", m, err)
}

// changeTSMetaByName changes the TSMeta of the series that the parameter m
// names, or makes it where create=true.
func (a *API) changeTSMetaByName(w http.ResponseWriter, r *http.Request, change meta.TSChange, overwrite bool) error {
	text, err := requiredValue(r, "m")
	if err != nil {
		return err
	}
	metric, tags, err := parseSeries(text)
	if err != nil {
		return &apiError{Code: http.StatusBadRequest, Message: err.Error(), Details: err.Error()}
	}
	tsuid, err := a.Find.TSUID(r.Context(), metric, tags)
	if err != nil {
		return notFoundName(err, "Unable to find one or more UIDs")
	}
	exists, err := a.Meta.HasTSMeta(r.Context(), tsuid)
	if err != nil {
		return err
	}
	var m *meta.TSMeta
	switch {
	case exists:
		m, err = a.Meta.ChangeTSMeta(r.Context(), tsuid, change, overwrite)
	case lastValue(r, "create") == "true":
		m, err = a.Meta.CreateTSMeta(r.Context(), tsuid, change)
	default:
		return bad("Could not find TSMeta, specify \"create=true\" to create a new one.")
	}
	return a.answerChange(w, r, "TSMeta", m, err)
}

func (a *API) deleteTSMeta(w http.ResponseWriter, r *http.Request) error {
	text, _, err := tsMetaChange(w, r)
	if err != nil {
		return err
	}
	if err := a.mayChange(w, r, auth.Write); err != nil {
		return err
	}
	tsuid, err := hexUID(text)
	if err != nil {
		return &apiError{Code: http.StatusBadRequest, Message: "Unable to delete TSMeta information", Details: "Missing UID"}
	}
	if err := a.Meta.DeleteTSMeta(r.Context(), tsuid); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
