package forest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"downpour/encoding"
	"downpour/gateway/extra/trees/tree"
	"downpour/gateway/metadata/meta"
	"downpour/gateway/uid"
)

// errNoSeries is returned for bytes that are no TSUID.
var errNoSeries = errors.New("it names no series")

// unnamed reports whether an error says that a TSUID is none, or that one of its UIDs has no
// name. Then the series can be in no tree.
func unnamed(err error) bool {
	var noName *uid.NoSuchIDError
	return errors.Is(err, errNoSeries) || errors.As(err, &noName)
}

// damaged reports whether an error says that the meta data of a name cannot be read, which
// stays so until somebody mends it.
func damaged(err error) bool {
	var text *json.SyntaxError
	var value *json.UnmarshalTypeError
	return errors.As(err, &text) || errors.As(err, &value)
}

// series returns what rules read of a series, with custom fields if they are wanted.
func (f *Forest) series(ctx context.Context, tsuid []byte, custom bool) (*tree.Series, error) {
	metric, tags, err := f.cfg.Schema.SplitTSUID(tsuid)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoSeries, err)
	}

	s := &tree.Series{TSUID: encoding.UID(tsuid).String()}
	if s.Metric, err = f.name(ctx, encoding.UIDMetric, metric, custom); err != nil {
		return nil, err
	}
	for _, p := range f.cfg.Schema.AppendPairs(nil, tags) {
		var t tree.Tag
		if t.Key, err = f.name(ctx, encoding.UIDTagK, p.K, custom); err != nil {
			return nil, err
		}
		if t.Value, err = f.name(ctx, encoding.UIDTagV, p.V, custom); err != nil {
			return nil, err
		}
		s.Tags = append(s.Tags, t)
	}
	return s, nil
}

// name returns a name, with the custom fields of its UIDMeta if they are wanted: these are
// read from the table each time.
func (f *Forest) name(ctx context.Context, kind encoding.UIDKind, u encoding.UID, custom bool) (tree.Name, error) {
	if !custom {
		text, err := f.cfg.Names.Name(ctx, kind, u)
		return tree.Name{Text: text}, err
	}
	m, err := f.meta.UIDMeta(ctx, kind, u)
	return tree.Name{Text: m.Name, Custom: m.Custom}, err
}

// described returns what rules read of a series, from its meta data.
func described(m *meta.TSMeta) *tree.Series {
	s := &tree.Series{TSUID: m.TSUID.String(), Metric: tree.Name{Text: m.Metric.Name, Custom: m.Metric.Custom}}
	for i := 0; i+1 < len(m.Tags); i += 2 { // a tagk, then its tagv
		s.Tags = append(s.Tags, tree.Tag{Key: tree.Name{Text: m.Tags[i].Name, Custom: m.Tags[i].Custom},
			Value: tree.Name{Text: m.Tags[i+1].Name, Custom: m.Tags[i+1].Custom}})
	}
	return s
}

// Trial is what a tree would do with a series.
type Trial struct {
	Meta     *meta.TSMeta `json:"meta"`
	Messages []string     `json:"messages"`
	Branch   *tree.Branch `json:"branch"` // the root, with the branches to be
}

// Try returns what a tree would do with a series, and stores nothing.
// Source: TreeRpc.handleTest.
func (f *Forest) Try(ctx context.Context, t *tree.Compiled, tsuid []byte) (*Trial, error) {
	m, err := f.meta.TSMeta(ctx, tsuid)
	switch {
	case unnamed(err):
		return &Trial{Messages: []string{"TSUID was missing a UID name: " + err.Error()}}, nil
	case err != nil:
		return nil, err
	case m == nil:
		return &Trial{Messages: []string{"Unable to locate TSUID meta data"}}, nil
	}

	// This tree alone gets all the work, which Add divides among the enabled ones.
	p := t.Place(described(m), tree.MaxWork, true)
	return &Trial{Meta: m, Messages: p.Messages, Branch: p.Shown(&t.Tree, m.TSUID.String())}, nil
}
