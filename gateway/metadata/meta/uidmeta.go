package meta

import (
	"context"
	"fmt"
	"strings"

	"downpour/encoding"
)

// UIDMeta is what is known of a UID, in the form of the HTTP API.
type UIDMeta struct {
	UID         encoding.UID      `json:"uid"`
	Type        string            `json:"type"` // METRIC, TAGK or TAGV
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Notes       string            `json:"notes"`
	Created     int64             `json:"created"` // seconds, 0 if unknown
	Custom      map[string]string `json:"custom"`
	DisplayName string            `json:"displayName"`
}

// UIDChange asks to change a UIDMeta; a nil field was not given.
type UIDChange struct {
	Kind                            encoding.UIDKind
	UID                             encoding.UID
	DisplayName, Description, Notes *string
	Created                         *int64
	Custom                          map[string]string
}

// empty tells that nothing would change: a text equal to that of new meta data
// counts as not given. Source: UIDMeta.setNotes.
func (u *UIDChange) empty() bool {
	return or(u.DisplayName, "") == "" && or(u.Description, "") == "" && or(u.Notes, "") == "" &&
		(u.Created == nil || *u.Created == 0) && u.Custom == nil
}

// typeName is a kind as UIDMeta has it. Source: UniqueIdType.
func typeName(k encoding.UIDKind) string {
	return [...]string{"METRIC", "TAGK", "TAGV"}[k]
}

// UIDMeta returns what is stored of a UID, or what is known without. A UID that
// has no name is a *uid.NoSuchIDError. Source: UIDMeta.getUIDMeta.
func (c *Catalog) UIDMeta(ctx context.Context, kind encoding.UIDKind, u encoding.UID) (UIDMeta, error) {
	name, err := c.name(ctx, kind, u)
	if err != nil {
		return UIDMeta{}, err
	}
	text, err := c.cell(ctx, c.cfg.UIDTable, u, string(kind.MetaQualifier()))
	if err != nil {
		return UIDMeta{}, fmt.Errorf("UIDMeta of %s %s: %w", kind, u, err)
	}
	var m encoding.UIDMeta
	if text != nil {
		if m, err = encoding.ParseUIDMeta(text); err != nil {
			return UIDMeta{}, fmt.Errorf("UIDMeta of %s %s: %w", kind, u, err)
		}
	}
	return UIDMeta{UID: u, Type: typeName(kind), Name: name, Description: m.Description, Notes: m.Notes,
		Created: m.Created, Custom: m.Custom, DisplayName: m.DisplayName}, nil
}

// name checks a UID's width and returns its name.
func (c *Catalog) name(ctx context.Context, kind encoding.UIDKind, u encoding.UID) (string, error) {
	if want := c.cfg.Schema.UIDWidth(kind); len(u) != want {
		return "", &WidthError{kind, len(u), want}
	}
	return c.cfg.Names.Name(ctx, kind, u)
}

// WidthError is the refusal of a UID of another width than the tables'.
type WidthError struct {
	Kind      encoding.UIDKind
	Got, Want int // bytes
}

// Error is OpenTSDB's text.
func (e *WidthError) Error() string {
	return fmt.Sprintf("Wrong id.length = %d which is != %d required for '%s'", e.Got, e.Want, e.Kind)
}

// ChangeUIDMeta merges a change into what is stored, or, with overwrite, puts it
// in its place: what was not given is then empty. It returns what is stored
// afterwards. Source: UIDMeta.syncToStorage.
func (c *Catalog) ChangeUIDMeta(ctx context.Context, change UIDChange, overwrite bool) (UIDMeta, error) {
	if change.empty() {
		return UIDMeta{}, ErrNoChange
	}
	if _, err := c.name(ctx, change.Kind, change.UID); err != nil {
		return UIDMeta{}, err
	}
	qualifier := string(change.Kind.MetaQualifier())
	old, err := c.cell(ctx, c.cfg.UIDTable, change.UID, qualifier)
	if err != nil {
		return UIDMeta{}, err
	}
	var was encoding.UIDMeta
	if old != nil {
		if was, err = encoding.ParseUIDMeta(old); err != nil {
			return UIDMeta{}, err
		}
	}
	value := encoding.AppendUIDMeta(nil, change.merge(was, overwrite))
	if err := c.exchange(ctx, c.cfg.UIDTable, change.UID, qualifier, old, value); err != nil {
		return UIDMeta{}, err
	}
	return c.UIDMeta(ctx, change.Kind, change.UID)
}

// merge is the meta data after the change.
func (u *UIDChange) merge(was encoding.UIDMeta, overwrite bool) encoding.UIDMeta {
	base := was
	if overwrite {
		base = encoding.UIDMeta{}
	}
	m := encoding.UIDMeta{Type: was.Type, Created: earlier(u.Created, was.Created), Custom: base.Custom,
		DisplayName: or(u.DisplayName, base.DisplayName), Description: or(u.Description, base.Description), Notes: or(u.Notes, base.Notes)}
	if u.Custom != nil {
		m.Custom = u.Custom
	}
	if m.Type == "" {
		m.Type = typeName(u.Kind)
	}
	return m
}

// DeleteUIDMeta removes what is stored of a UID; its name stays.
func (c *Catalog) DeleteUIDMeta(ctx context.Context, kind encoding.UIDKind, u encoding.UID) error {
	return c.remove(ctx, c.cfg.UIDTable, u, string(kind.MetaQualifier()))
}

// ParseKind reads metric, metrics, tagk or tagv, in any case.
// Source: UniqueId.stringToUniqueIdType.
func ParseKind(text string) (encoding.UIDKind, error) {
	switch strings.ToLower(text) {
	case "metric", "metrics":
		return encoding.UIDMetric, nil
	case "tagk":
		return encoding.UIDTagK, nil
	case "tagv":
		return encoding.UIDTagV, nil
	}
	return 0, fmt.Errorf("Invalid type requested: %s", text)
}
