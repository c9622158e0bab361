package settings

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// prefix is what the names of all of Downpour's variables begin with.
const prefix = "DOWNPOUR_"

// gatewayOnly are the variables that only the gateway reads. Both programs know them,
// because both may be started from one environment.
var gatewayOnly = []string{
	"DOWNPOUR_LISTEN", "DOWNPOUR_OPENTSDB_CONF", "DOWNPOUR_AUTO_METRICS", "DOWNPOUR_AUTO_TAGKS", "DOWNPOUR_AUTO_TAGVS",
	"DOWNPOUR_MAX_TAGS", "DOWNPOUR_ALLOW_SPECIALCHARS", "DOWNPOUR_PUT_CELLS", "DOWNPOUR_ENABLE_APPENDS",
	"DOWNPOUR_HISTOGRAMS",
	"DOWNPOUR_SKIP_UNRESOLVED_TAGVS", "DOWNPOUR_EXPANSION_LIMIT", "DOWNPOUR_TIMEZONE",
	"DOWNPOUR_LIMIT_BYTES", "DOWNPOUR_LIMIT_BYTES_OVERRIDE", "DOWNPOUR_LIMIT_POINTS", "DOWNPOUR_LIMIT_POINTS_OVERRIDE",
	"DOWNPOUR_LIMIT_CONNECTIONS", "DOWNPOUR_LIMIT_QUERIES",
	"DOWNPOUR_ROLLUP_TAG_KEY", "DOWNPOUR_ROLLUP_RAW_VALUE", "DOWNPOUR_ROLLUP_TAG_RAW", "DOWNPOUR_ROLLUP_BLOCK_DERIVED",
	"DOWNPOUR_ROLLUP_SPLIT",
	"DOWNPOUR_ROLLUP_RATE",
	"DOWNPOUR_LIMIT_OVERRIDES", "DOWNPOUR_LIMIT_MEMORY", "DOWNPOUR_LIMIT_NAME", "DOWNPOUR_LIMIT_JSON",
	"DOWNPOUR_LIMIT_ARROW",
	"DOWNPOUR_HEAVY_QUERIES", "DOWNPOUR_HEAVY_POINTS", "DOWNPOUR_FIX",
	"DOWNPOUR_ALLOW_DELETE", "DOWNPOUR_MODE", "DOWNPOUR_META_TRACKING", "DOWNPOUR_META_INCREMENTING",
	"DOWNPOUR_META_REALTIME_TS", "DOWNPOUR_META_REALTIME_UID", "DOWNPOUR_TREE_PROCESSING",
	"DOWNPOUR_QUERY_TIMEOUT", "DOWNPOUR_PUT_TIMEOUT", "DOWNPOUR_SLOW_QUERY", "DOWNPOUR_DRAIN", "DOWNPOUR_PUSHDOWN",
	"DOWNPOUR_OTLP_TAGS",
	"DOWNPOUR_SELF_METRICS", "DOWNPOUR_ALLOW_ORIGINS", "DOWNPOUR_ALLOW_HOSTS", "DOWNPOUR_ALLOW_IMAGES",
	"DOWNPOUR_PROFILING",
	"DOWNPOUR_RETENTION", "DOWNPOUR_SEAL",
}

// renamed has the new names of renamed variables, so that an error can name them if an old one is
// set.
var renamed = map[string]string{"DOWNPOUR_SUMMARIES": "DOWNPOUR_RESULT_CACHE"}

// Known returns the names of all variables that a Downpour program reads, sorted.
func Known() []string {
	names := slices.Clone(gatewayOnly)
	for _, v := range List(&Pushdown{}) {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	return names
}

// errEmptyTLS refuses a variable that is set to nothing, as by a template without its value. For
// others that means the default; here it would disable encryption.
var errEmptyTLS = errors.New("DOWNPOUR_HBASE_TLS: got nothing, want off, on or the path of a file with authorities")

// Unknown returns an error that names every variable of environ ("NAME=value", as
// os.Environ returns them) that begins with DOWNPOUR_ and that no program knows. A
// misspelt name would otherwise silently leave a default in force. So would an empty
// DOWNPOUR_HBASE_TLS.
func Unknown(environ []string) error {
	known := Known()
	var errs []error
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		switch {
		case name == "DOWNPOUR_HBASE_TLS" && value == "":
			errs = append(errs, errEmptyTLS)
		case !strings.HasPrefix(name, prefix) || slices.Contains(known, name):
		case renamed[name] != "":
			errs = append(errs, fmt.Errorf("%s: this variable is now named %s", name, renamed[name]))
		default:
			errs = append(errs, fmt.Errorf("%s: no Downpour program knows this variable", name))
		}
	}

	if len(errs) > 0 {
		errs = append(errs, fmt.Errorf("known are %s", strings.Join(known, ", ")))
	}
	return errors.Join(errs...)
}

// Value is one setting, as -print-config prints it.
type Value struct {
	Name  string // of the variable
	Value string // "***" for a secret that is set
}

// Structs returns a configuration, a pointer to a struct, and those that belong to it: what its method MoreSettings
// returns, if it has one.
func Structs(config any) []any {
	all := []any{config}
	if more, ok := config.(interface{ MoreSettings() []any }); ok {
		all = append(all, more.MoreSettings()...)
	}
	return all
}

// List returns the effective values of a configuration and of those that belong to it, see Structs, in the
// order of their fields. A field with the tag mask:"true" is a secret.
func List(config any) (out []Value) {
	for _, c := range Structs(config) {
		out = append(out, list(reflect.ValueOf(c).Elem())...)
	}
	return out
}

// list is List of the struct, and of structs in it.
func list(v reflect.Value) (out []Value) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("env"), ",")
		switch {
		case name != "":
			out = append(out, Value{name, shown(v.Field(i).Interface(), f.Tag.Get("mask") == "true")})
		case f.Type.Kind() == reflect.Struct && f.IsExported():
			out = append(out, list(v.Field(i))...)
		}
	}
	return out
}

// shown returns a value as it is printed.
func shown(value any, secret bool) string {
	text := fmt.Sprint(value)
	if items, ok := value.([]string); ok {
		text = strings.Join(items, ",")
	}
	if secret && text != "" {
		return "***"
	}
	return text
}
