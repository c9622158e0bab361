package metaroutes

import (
	"net/http"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/jackson"
)

// newText is a text of a change. to is nil if the text does not change. OpenTSDB compares the given
// text with an empty one: so "" changes nothing, and null makes the text empty.
// Source: Annotation.setDescription.
type newText struct{ to *string }

// UnmarshalJackson reads the text.
func (n *newText) UnmarshalJackson(_ *jackson.Reader, t jackson.Token) error {
	text, err := t.AsText()
	// It may already be set if the key comes twice.
	if text != "" || t.Kind == jackson.Null || n.to != nil { //fault:null-leaves-texts TestStories/nulls
		n.to = &text
	}
	return err
}

// newValue returns a parameter that is a text of a change.
func newValue(r *http.Request, name string) *string {
	if text := httpio.LastValue(r, name); text != "" {
		return &text
	}
	return nil
}
