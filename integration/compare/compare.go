package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Comparer compares answers. The zero value permits nothing.
type Comparer struct {
	Permits []Permit

	// Relative lets floats differ by this much, relative to the larger one; 0
	// compares them exactly. It is for partial merges, whose order of addition
	// is free (1e-12).
	Relative float64

	// MessageStart compares error messages only as far as the wanted one goes:
	// recordings are cut where a message begins to quote Java objects.
	MessageStart bool
}

// Answer is an HTTP answer as far as it is compared.
type Answer struct {
	Status int
	Body   []byte
}

// Answers compares status and body. A wanted body that is no JSON (a page of
// HTML) compares its status alone. The error is about a body of ours that
// cannot be read.
func (c Comparer) Answers(want, got Answer) (Report, error) {
	var r Report
	// The bodies of other statuses are other objects: comparing them would show nothing more.
	if want.Status != got.Status {
		c.add(&r, Difference{
			Path: Path{},
			Kind: Status,
			Want: strconv.Itoa(want.Status),
			Got:  short(string(got.Body), strconv.Itoa(got.Status)+" "),
		})
		return r, nil
	}
	if empty(want.Body) && empty(got.Body) {
		return r, nil
	}
	if !empty(want.Body) && !json.Valid(want.Body) {
		return r, nil
	}
	return c.JSON(want.Body, got.Body)
}

func empty(body []byte) bool { return len(bytes.TrimSpace(body)) == 0 }

// JSON compares two JSON texts. The error says which one cannot be read.
func (c Comparer) JSON(want, got []byte) (Report, error) {
	w, err := parse(want)
	if err != nil {
		return Report{}, fmt.Errorf("wanted answer: %w", err)
	}
	g, err := parse(got)
	if err != nil {
		return Report{}, fmt.Errorf("answer got: %w: %s", err, short(string(got), ""))
	}
	var r Report
	c.values(&r, Path{}, w, g)
	return r, nil
}

// parse reads one JSON value, numbers as their text.
func parse(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("no JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("no JSON: something follows at byte %d", d.InputOffset())
	}
	return v, nil
}

// add puts a difference where it belongs.
func (c Comparer) add(r *Report, d Difference) {
	if reason, ok := permits(c.Permits, d); ok {
		d.Permitted = reason
		r.Permitted = append(r.Permitted, d)
		return
	}
	r.Differences = append(r.Differences, d)
}

// values compares two JSON values, of whatever type, at a path.
func (c Comparer) values(r *Report, at Path, want, got any) {
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			c.objects(r, at, w, g)
			return
		}
	case []any:
		if g, ok := got.([]any); ok {
			c.arrays(r, at, w, g)
			return
		}
	case json.Number:
		if g, ok := got.(json.Number); ok {
			c.numbers(r, at, w, g)
			return
		}
	case string:
		if g, ok := got.(string); ok {
			c.strings(r, at, w, g)
			return
		}
	default: // true, false, null
		if want == got {
			return
		}
	}
	c.add(r, Difference{Path: at, Kind: Type, Want: show(want), Got: show(got)})
}

// objects compares key by key, in sorted order so that a report is the same
// each time.
func (c Comparer) objects(r *Report, at Path, want, got map[string]any) {
	keys := slices.Collect(maps.Keys(want))
	for key := range got {
		if _, ok := want[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		w, wanted := want[key]
		g, there := got[key]
		switch path := at.child(key); {
		case !there:
			c.add(r, Difference{Path: path, Kind: Missing, Want: show(w)})
		case !wanted:
			c.add(r, Difference{Path: path, Kind: Extra, Got: show(g)})
		default:
			c.values(r, path, w, g)
		}
	}
}

// arrays compares element by element; what one has beyond the other's end is shown by the lengths.
func (c Comparer) arrays(r *Report, at Path, want, got []any) {
	// These are sets.
	if len(at) > 0 && (at[len(at)-1] == "aggregateTags" || at[len(at)-1] == "aggregatedTags") {
		want, got = sortedSet(want), sortedSet(got)
	}
	if len(want) != len(got) {
		c.add(r, Difference{Path: at, Kind: Length, Want: sized(want), Got: sized(got)})
	}
	for i := range min(len(want), len(got)) {
		c.values(r, at.child(fmt.Sprintf("[%d]", i)), want[i], got[i])
	}
}

// sortedSet orders an array of strings; other values keep their place.
func sortedSet(a []any) []any {
	a = slices.Clone(a)
	slices.SortStableFunc(a, func(x, y any) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
	return a
}

// numbers compares type and value; how a number is written shows its type.
func (c Comparer) numbers(r *Report, at Path, want, got json.Number) {
	d := Difference{Path: at, Kind: Value, Want: string(want), Got: string(got)}
	if isFloat(want) != isFloat(got) {
		d.Kind = IntType
		c.add(r, d)
		return
	}
	if !isFloat(want) {
		if !sameInteger(want, got) {
			c.add(r, d)
		}
		return
	}
	same, ulps, relative := floats(want, got)
	// 0.0 and -0.0 are no relative distance apart, and differ nevertheless without a tolerance.
	if same || relative <= c.Relative && c.Relative > 0 {
		return
	}
	d.ULPs, d.Relative = ulps, relative
	c.add(r, d)
}

// strings compares texts; see MessageStart.
func (c Comparer) strings(r *Report, at Path, want, got string) {
	if want == got {
		return
	}
	message := len(at) == 2 && at[0] == "error" && at[1] == "message"
	if c.MessageStart && message && strings.HasPrefix(got, want) {
		return
	}
	c.add(r, Difference{Path: at, Kind: Value, Want: show(want), Got: show(got)})
}

// show writes a value as JSON, shortened.
func show(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprintf("%v", v)
	}
	return short(strings.TrimSuffix(b.String(), "\n"), "")
}

func sized(a []any) string { return short(show(a), fmt.Sprintf("%d of ", len(a))) }

// short cuts a text to what fits on a line.
func short(s, prefix string) string {
	const limit = 120
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return prefix + s
}
