package meta

import (
	"context"
	"fmt"
	"strings"

	"downpour/encoding"
)

// UIDMeta is the meta data of a UID, in the form of the HTTP API.
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

// UIDChange is a change of a UIDMeta; a nil field keeps its value.
type UIDChange struct {
	Kind                            encoding.UIDKind
	UID                             encoding.UID
	DisplayName, Description, Notes *string
	Created                         *int64
	Custom                          map[string]string
}

// empty reports whether a change has no new value: 0 is the time of new meta data.
// Source: UIDMeta.setNotes.
func (u *UIDChange) empty() bool {
	return u.DisplayName == nil && u.Description == nil && u.Notes == nil &&
		(u.Created == nil || *u.Created == 0) && u.Custom == nil
}

// UIDMeta returns the stored meta data of a UID, or its name and type if none is stored.
// It returns a *uid.NoSuchIDError for a UID without a name. Source: UIDMeta.getUIDMeta.
func (c *Catalog) UIDMeta(ctx context.Context, kind encoding.UIDKind, u encoding.UID) (UIDMeta, error) {
	name, err := c.name(ctx, kind, u)
	if err != nil {
		return UIDMeta{}, err
	}
	m, _, err := c.uidMeta(ctx, kind, u)
	if err != nil {
		return UIDMeta{}, fmt.Errorf("UIDMeta of %s %s: %w", kind, u, err)
	}
	return UIDMeta{UID: u, Type: kind.MetaType(), Name: name, Description: m.Description, Notes: m.Notes,
		Created: m.Created, Custom: m.Custom, DisplayName: m.DisplayName}, nil
}

// uidMeta returns the stored meta data of a UID with its text. Without a text none is stored, and all that may be known
// is the time of the mapping.
func (c *Catalog) uidMeta(ctx context.Context, kind encoding.UIDKind, u encoding.UID) (
	m encoding.UIDMeta, text []byte, err error) {
	rows, err := c.cfg.Store.Get(ctx, c.cfg.UIDTable, encoding.FamilyName, [][]byte{u})
	if err != nil || len(rows) == 0 {
		return m, nil, err
	}
	for _, x := range rows[0].Cells {
		switch string(x.Qualifier) {
		case string(kind.MetaQualifier()):
			text = append([]byte{}, x.Value...)
			m, err = encoding.ParseUIDMeta(text)
			return m, text, err
		case kind.String():
			if c.cfg.MappingTimes {
				m.Created = x.Timestamp / 1000
			}
		}
	}
	return m, nil, nil
}

// name checks the width of a UID and returns its name.
func (c *Catalog) name(ctx context.Context, kind encoding.UIDKind, u encoding.UID) (string, error) {
	if want := c.cfg.Schema.UIDWidth(kind); len(u) != want {
		return "", &WidthError{kind, len(u), want}
	}
	return c.cfg.Names.Name(ctx, kind, u)
}

// WidthError is returned for a UID whose width is not that of the tables.
type WidthError struct {
	Kind      encoding.UIDKind
	Got, Want int // bytes
}

// Error returns OpenTSDB's text.
func (e *WidthError) Error() string {
	return fmt.Sprintf("Wrong id.length = %d which is != %d required for '%s'", e.Got, e.Want, e.Kind)
}

// ChangeUIDMeta merges a change into the stored meta data or, with overwrite, replaces it:
// then fields that are not given are empty. It returns what is stored afterwards. Source: UIDMeta.syncToStorage.
func (c *Catalog) ChangeUIDMeta(ctx context.Context, change UIDChange, overwrite bool) (UIDMeta, error) {
	if change.empty() {
		return UIDMeta{}, ErrNoChange
	}
	// Only a UID that has a name may be described.
	if _, err := c.name(ctx, change.Kind, change.UID); err != nil {
		return UIDMeta{}, err
	}

	qualifier := string(change.Kind.MetaQualifier())
	was, old, err := c.uidMeta(ctx, change.Kind, change.UID)
	if err != nil {
		return UIDMeta{}, err
	}

	value := encoding.AppendUIDMeta(nil, change.merge(was, overwrite))
	if err := c.exchange(ctx, c.cfg.UIDTable, change.UID, qualifier, old, value); err != nil {
		return UIDMeta{}, err
	}
	return c.UIDMeta(ctx, change.Kind, change.UID)
}

// merge returns the meta data after the change.
func (u *UIDChange) merge(was encoding.UIDMeta, overwrite bool) encoding.UIDMeta {
	base := was
	if overwrite {
		base = encoding.UIDMeta{}
	}
	// Type and time of creation are no user's, so an overwrite keeps them.
	m := encoding.UIDMeta{
		Type:        was.Type,
		Created:     earlier(u.Created, was.Created),
		Custom:      base.Custom,
		DisplayName: textOr(u.DisplayName, base.DisplayName),
		Description: textOr(u.Description, base.Description),
		Notes:       textOr(u.Notes, base.Notes),
	}
	if u.Custom != nil {
		m.Custom = u.Custom
	}
	// There was no object, or its text lacks the type.
	if m.Type == "" {
		m.Type = u.Kind.MetaType()
	}
	return m
}

// DeleteUIDMeta removes the meta data of a UID; its name stays.
func (c *Catalog) DeleteUIDMeta(ctx context.Context, kind encoding.UIDKind, u encoding.UID) error {
	return c.remove(ctx, c.cfg.UIDTable, u, string(kind.MetaQualifier()))
}

// ParseKind parses metric, metrics, tagk or tagv, in upper or lower case.
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
