package live

// NewMessage returns an update that is no answer to a query: a message of another kind, with the
// text that JSON returns. The text must not change.
func NewMessage(kind Kind, text []byte) *Update { return &Update{Kind: kind, json: text} }

// NewError returns an update with an error.
func NewError(e *Error) *Update { return &Update{Kind: KindError, Err: e} }
