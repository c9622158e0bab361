package jackson

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Unmarshaler is a value that reads itself. t begins it; all of it must be read.
type Unmarshaler interface {
	UnmarshalJackson(r *Reader, t Token) error
}

// Raw is a value that is not read yet, only its syntax. null is empty.
type Raw []byte

// UnmarshalJackson keeps the value as it is written.
func (w *Raw) UnmarshalJackson(r *Reader, t Token) error {
	if *w = nil; t.Kind == Null {
		return nil
	}
	from := r.from
	err := r.Skip(t)
	*w = Raw(r.body[from:r.at])
	return err
}

// Unmarshal reads a body, which holds one value, into what to points to.
func Unmarshal(body []byte, to any) error {
	r := NewReader(body)
	t, err := r.Next()
	if err == nil {
		err = r.Decode(t, to)
	}
	if err == nil {
		err = r.End()
	}
	return err
}

// Decode reads the value that begins with t into what to points to:
//
//	string, bool, int64, int32, float64   as Token converts them; null is their zero
//	*int64 and the like, *bool            the same; nil without the field alone
//	*string, other pointers               nil for null
//	lists, maps by text                   nil for null; else a new one
//	structs                               fields by their tag json; keys without a field are
//	                                      ignored, or refused where a field's tag jackson is strict
func (r *Reader) Decode(t Token, to any) error {
	return r.decode(t, reflect.ValueOf(to).Elem())
}

func (r *Reader) decode(t Token, to reflect.Value) (err error) {
	if u, ok := to.Addr().Interface().(Unmarshaler); ok {
		return u.UnmarshalJackson(r, t)
	}
	switch to.Kind() {
	case reflect.String:
		var s string
		s, err = t.AsText()
		to.SetString(s)
	case reflect.Bool:
		var b bool
		b, err = t.AsBool()
		to.SetBool(b)
	case reflect.Int64, reflect.Int32:
		var n int64
		n, err = t.integer(to.Type().Bits())
		to.SetInt(n)
	case reflect.Float64:
		var f float64
		f, err = t.AsDouble()
		to.SetFloat(f)
	case reflect.Pointer:
		return r.decodePointer(t, to)
	case reflect.Slice:
		return r.decodeList(t, to)
	case reflect.Map:
		return r.decodeMap(t, to)
	case reflect.Struct:
		return r.decodeStruct(t, to)
	default:
		panic(fmt.Sprintf("jackson: cannot decode a %s", to.Type()))
	}
	return err
}

// decodePointer reads a value that may be missing.
func (r *Reader) decodePointer(t Token, to reflect.Value) error {
	primitive := false
	switch to.Type().Elem().Kind() {
	case reflect.Bool, reflect.Int64, reflect.Int32, reflect.Float64:
		primitive = true
	}
	if t.Kind == Null && !primitive {
		to.SetZero()
		return nil
	}
	to.Set(reflect.New(to.Type().Elem()))
	return r.decode(t, to.Elem())
}

func (r *Reader) decodeList(t Token, to reflect.Value) error {
	if to.SetZero(); t.Kind == Null {
		return nil
	}
	to.Set(reflect.MakeSlice(to.Type(), 0, 0))
	return r.EachElement(t, func(t Token) error {
		n := to.Len()
		to.Set(reflect.Append(to, reflect.Zero(to.Type().Elem())))
		return r.decode(t, to.Index(n))
	})
}

func (r *Reader) decodeMap(t Token, to reflect.Value) error {
	if to.SetZero(); t.Kind == Null {
		return nil
	}
	if m, ok := to.Addr().Interface().(*map[string]string); ok { // most maps: tags
		*m = map[string]string{}
		return r.Each(t, func(name string, t Token) (err error) {
			(*m)[name], err = t.AsText()
			return err
		})
	}
	to.Set(reflect.MakeMap(to.Type()))
	return r.Each(t, func(name string, t Token) error {
		value := reflect.New(to.Type().Elem()).Elem()
		err := r.decode(t, value)
		to.SetMapIndex(reflect.ValueOf(name), value)
		return err
	})
}

// decodeStruct reads an object into the fields that it names; null leaves them as they are.
func (r *Reader) decodeStruct(t Token, to reflect.Value) error {
	if t.Kind == Null {
		return nil
	}
	fields := fieldsOf(to.Type())
	return r.Each(t, func(name string, t Token) error {
		if i, ok := fields.at[name]; ok {
			return r.decode(t, to.Field(i))
		}
		if fields.strict {
			names := slices.Sorted(maps.Keys(fields.at))
			return fmt.Errorf("want no field of this name, but %s", strings.Join(names, ", "))
		}
		return r.Skip(t)
	})
}

// fields are the places of a struct's fields by their names in JSON.
type fields struct {
	at     map[string]int
	strict bool
}

// known are the fields of structs, by type.
var known sync.Map // of reflect.Type to *fields

func fieldsOf(t reflect.Type) *fields {
	if f, ok := known.Load(t); ok {
		return f.(*fields)
	}
	f := &fields{at: map[string]int{}}
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		if name := tag.Get("json"); name != "" {
			f.at[name] = i
		}
		f.strict = f.strict || tag.Get("jackson") == "strict"
	}
	known.Store(t, f)
	return f
}
