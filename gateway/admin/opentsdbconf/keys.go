package opentsdbconf

import (
	"errors"
	"strconv"
	"strings"

	"downpour/gateway/api/origin"
	"downpour/pushdown/process/list"
)

// rule says to which variable a honoured key is translated, and how its value is parsed.
// The error of read says what is wanted.
type rule struct {
	variable string
	read     func(string) (string, error)
}

// honoured are the keys that change answers or stored bytes, and some others that clients
// can notice.
var honoured = map[string]rule{
	"tsd.storage.uid.width.metric":                {"DOWNPOUR_UID_WIDTH_METRIC", number},
	"tsd.storage.uid.width.tagk":                  {"DOWNPOUR_UID_WIDTH_TAGK", number},
	"tsd.storage.uid.width.tagv":                  {"DOWNPOUR_UID_WIDTH_TAGV", number},
	"tsd.storage.salt.width":                      {"DOWNPOUR_SALT_WIDTH", number},
	"tsd.storage.salt.buckets":                    {"DOWNPOUR_SALT_BUCKETS", number},
	"tsd.storage.max_tags":                        {"DOWNPOUR_MAX_TAGS", number},
	"tsd.storage.fix_duplicates":                  {"DOWNPOUR_FIX_DUPLICATES", boolean},
	"tsd.storage.enable_appends":                  {"DOWNPOUR_ENABLE_APPENDS", boolean},
	"tsd.storage.hbase.data_table":                {"DOWNPOUR_TABLE_DATA", text},
	"tsd.storage.hbase.uid_table":                 {"DOWNPOUR_TABLE_UID", text},
	"tsd.storage.hbase.meta_table":                {"DOWNPOUR_TABLE_META", text},
	"tsd.storage.hbase.tree_table":                {"DOWNPOUR_TABLE_TREE", text},
	"tsd.core.auto_create_metrics":                {"DOWNPOUR_AUTO_METRICS", boolean},
	"tsd.core.auto_create_tagks":                  {"DOWNPOUR_AUTO_TAGKS", boolean},
	"tsd.core.auto_create_tagvs":                  {"DOWNPOUR_AUTO_TAGVS", boolean},
	"tsd.core.meta.enable_realtime_ts":            {"DOWNPOUR_META_REALTIME_TS", boolean},
	"tsd.core.meta.enable_realtime_uid":           {"DOWNPOUR_META_REALTIME_UID", boolean},
	"tsd.core.meta.enable_tsuid_incrementing":     {"DOWNPOUR_META_INCREMENTING", boolean},
	"tsd.core.meta.enable_tsuid_tracking":         {"DOWNPOUR_META_TRACKING", boolean},
	"tsd.core.tree.enable_processing":             {"DOWNPOUR_TREE_PROCESSING", boolean},
	"tsd.core.tag.allow_specialchars":             {"DOWNPOUR_ALLOW_SPECIALCHARS", anything},
	"tsd.core.histograms.config":                  {"DOWNPOUR_HISTOGRAMS", anything},
	"tsd.core.timezone":                           {"DOWNPOUR_TIMEZONE", text},
	"tsd.query.filter.expansion_limit":            {"DOWNPOUR_EXPANSION_LIMIT", number},
	"tsd.query.skip_unresolved_tagvs":             {"DOWNPOUR_SKIP_UNRESOLVED_TAGVS", boolean},
	"tsd.query.limits.bytes.default":              {"DOWNPOUR_LIMIT_BYTES", number},
	"tsd.query.limits.bytes.allow_override":       {"DOWNPOUR_LIMIT_BYTES_OVERRIDE", boolean},
	"tsd.query.limits.data_points.default":        {"DOWNPOUR_LIMIT_POINTS", number},
	"tsd.query.limits.data_points.allow_override": {"DOWNPOUR_LIMIT_POINTS_OVERRIDE", boolean},
	"tsd.query.limits.overrides.config":           {"DOWNPOUR_LIMIT_OVERRIDES", anything},
	"tsd.query.timeout":                           {"DOWNPOUR_QUERY_TIMEOUT", milliseconds},
	"tsd.http.query.allow_delete":                 {"DOWNPOUR_ALLOW_DELETE", boolean},
	"tsd.http.request.cors_domains":               {"DOWNPOUR_ALLOW_ORIGINS", origins},
	"tsd.mode":                                    {"DOWNPOUR_MODE", mode},
	"tsd.rollups.agg_tag_key":                     {"DOWNPOUR_ROLLUP_TAG_KEY", text},
	"tsd.rollups.raw_agg_tag_value":               {"DOWNPOUR_ROLLUP_RAW_VALUE", text},
	"tsd.rollups.tag_raw":                         {"DOWNPOUR_ROLLUP_TAG_RAW", boolean},
	"tsd.rollups.block_derived":                   {"DOWNPOUR_ROLLUP_BLOCK_DERIVED", boolean},
	"tsd.rollups.split_query.enable":              {"DOWNPOUR_ROLLUP_SPLIT", boolean},
}

func text(s string) (string, error) {
	if s == "" {
		return "", errors.New("some text")
	}
	return s, nil
}

func anything(s string) (string, error) { return s, nil }

// origins refuses texts that no browser sends as an origin. OpenTSDB accepts them, and
// then they allow nothing.
func origins(s string) (string, error) {
	if _, _, err := origin.Parse(list.Split(s)); err != nil {
		return "", errors.New("* or origins as browsers send them, such as http://localhost:8000")
	}
	return s, nil
}

func number(s string) (string, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err != nil || n < 0 {
		return "", errors.New("a number of at least 0")
	}
	return s, nil
}

// milliseconds makes a duration of a number. For 0, which is no bound in OpenTSDB, it
// returns "", so that the variable keeps its default: here a query must have a bound.
func milliseconds(s string) (string, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 0 {
		return "", errors.New("a number of milliseconds of at least 0")
	}
	if n == 0 {
		return "", nil
	}
	return s + "ms", nil
}

// boolean never fails: what is not true is false. Source: Config.getBoolean.
func boolean(s string) (string, error) { return strconv.FormatBool(readBool(s)), nil }

func readBool(s string) bool {
	switch strings.ToLower(s) {
	case "1", "true", "yes":
		return true
	}
	return false
}

func mode(s string) (string, error) {
	if s != "rw" && s != "ro" && s != "wo" {
		return "", errors.New("rw, ro or wo")
	}
	return s, nil
}

// fixed is the only value of a key that agrees with what Downpour does, "" for none. The
// reason is given for all other values.
type fixed struct{ value, reason string }

const (
	noPlugins = "plugins are Java classes"
	speedOnly = "it tunes OpenTSDB and changes no answer"
	noUI      = "the web page is Downpour's own"

	otherTimes = "cells get the time of their write; another value ends the start, for TSDs with it scan by the " +
		"times of cells and would not find what gateways put late, nor what is put again into rows that gateways " +
		"compact"
)

// constant are the keys with one value that says what Downpour does, whatever the file says.
var constant = map[string]fixed{
	"tsd.storage.enable_compaction": {"false",
		"rows are compacted by gateway compact and in the background (DOWNPOUR_COMPACT)"},
	"tsd.storage.repair_appends": {"false",
		"append columns are read in any order and never rewritten"},
	"tsd.storage.use_otsdb_timestamp":              {"false", otherTimes},
	"tsd.storage.use_max_value":                    {"true", "of two values the one written later counts"},
	"tsd.storage.get_date_tiered_compaction_start": {"0", "scans take all times of writing"},
	"tsd.core.uid.random_metrics":                  {"false", "UIDs are counted"},
	"tsd.core.meta.cache.enable":                   {"false", noPlugins},
	"tsd.core.bulk.allow_out_of_order_timestamps":  {"false", "give import -allow-out-of-order"},
	"tsd.core.authentication.enable":               {"false", "access is by DOWNPOUR_TOKEN_FILE"},
	"tsd.core.enable_api":                          {"true", "the API is always there"},
	"tsd.core.enable_ui":                           {"true", noUI},
	"tsd.core.plugin_path":                         {"", noPlugins},
	"tsd.core.connections.limit": {"0",
		"connections are bounded for each address, by DOWNPOUR_LIMIT_CONNECTIONS"},
	"tsd.core.stats_with_port":                {"false", "stats have no port"},
	"tsd.no_diediedie":                        {"true", "diediedie is refused"},
	"tsd.query.enable_fuzzy_filter":           {"", "explicitTags loses no series, with a filter or without"},
	"tsd.query.allow_simultaneous_duplicates": {"true", "equal queries may run side by side"},
	"tsd.query.multi_get.enable":              {"false", speedOnly},
	"tsd.rpc.telnet.return_errors":            {"true", "error lines are always sent"},
	"tsd.http.show_stack_trace":               {"false", "errors never show the program's insides"},
	"tsd.http.request.enable_chunked":         {"true", "chunked bodies are always taken"},
	"tsd.http.request.max_chunk":              {"", "bodies are bounded by 32 MiB"},
	"tsd.http.request.cors_headers":           {"", "the headers allowed to browsers are fixed"},
	"tsd.http.header_tag":                     {"", "request headers give points no tags"},
	"tsd.http.cachedir":                       {"", "nothing is cached in files"},
	"tsd.gnuplot.options.allowlist": {"",
		"pictures are drawn without gnuplot, and none of its options is run"},
	"tsd.http.staticroot": {"", noUI},
}

// demanded are the constant keys where any other value is an error: points would be missing
// from the answers of others.
var demanded = []string{"tsd.storage.use_otsdb_timestamp"}

// reasons are those of families of keys. The first prefix that fits counts.
var reasons = []struct{ prefix, reason string }{
	{"tsd.storage.compaction.", "rows are compacted by gateway compact and in the background (DOWNPOUR_COMPACT)"},
	{"tsd.storage.hbase.", speedOnly},
	{"tsd.storage.flush_interval", speedOnly},
	{"tsd.core.preload_uid_cache", speedOnly},
	{"tsd.core.socket.", speedOnly},
	{"tsd.network.", speedOnly},
	{"tsd.rtpublisher.", noPlugins},
	{"tsd.search.", noPlugins},
	{"tsd.startup.", noPlugins},
	{"tsd.http.serializer.", noPlugins},
	{"tsd.http.rpc.", noPlugins},
	{"tsd.rpc.", noPlugins},
	{"tsd.core.storage_exception_handler", noPlugins},
	{"tsd.core.authentication.", "access is by DOWNPOUR_TOKEN_FILE"},
	{"tsd.query.limits.overrides.interval", "the file is read again when it changes"},
	{"hbase.", "it is for OpenTSDB's HBase client"},
}

// unknownReason returns why a key of neither table is not honoured, by its family.
func unknownReason(key string) string {
	for _, r := range reasons {
		if strings.HasPrefix(key, r.prefix) {
			return r.reason
		}
	}
	return "it is not known"
}

// is reports whether a value says what Downpour does.
func (f fixed) is(value string) bool {
	switch f.value {
	case "true", "false":
		return readBool(value) == (f.value == "true")
	case "":
		return false
	}
	return value == f.value
}
