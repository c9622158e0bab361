// Package gateway is the server that clients talk to. It accepts OpenTSDB's HTTP API and
// telnet lines, and answers with JSON, Arrow and WebSocket messages. It keeps no data:
// points go to the store, and all gateways on the same tables give the same answers.
//
//	telnet, /api/put ──▶ write ──▶ store
//	/api/query ──▶ query/engine: uid, plan, dispatch (parts), merge ──▶ JSON, Arrow
//	/api/ws ──▶ live ──▶ query/engine once, then changefeed and incremental
//
// This package reads the settings, puts the parts together, and starts and ends them.
package gateway

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"downpour/encoding"
	"downpour/encoding/zones"
	"downpour/gateway/api/origin"
	"downpour/gateway/query"
	"downpour/gateway/query/plan"
	"downpour/gateway/write"
	"downpour/pushdown/process/list"
	"downpour/pushdown/process/network"
	"downpour/pushdown/process/settings"
)

// Config holds the settings of a gateway, one field for each environment variable.
type Config struct {
	settings.Common
	MetaConfig

	// Listen is the address of the port for HTTP, WebSocket and telnet.
	Listen string `env:"DOWNPOUR_LISTEN" envDefault:"127.0.0.1:4242"`
	// TableState is the table of what Downpour itself keeps: dashboards, leases, announcements of pushdown servers.
	TableState string `env:"DOWNPOUR_TABLE_STATE" envDefault:"downpour-state"`
	// OpenTSDBConf is the path of an opentsdb.conf. Its keys hold unless the environment
	// sets the same.
	OpenTSDBConf string `env:"DOWNPOUR_OPENTSDB_CONF"`
	// AutoMetrics lets puts make new metrics: true, false, or empty, which is true on
	// an embedded store and false on HBase.
	AutoMetrics string `env:"DOWNPOUR_AUTO_METRICS"`
	// AutoTagKs and AutoTagVs let puts make new tag keys and values: true, false, or
	// empty for true.
	AutoTagKs string `env:"DOWNPOUR_AUTO_TAGKS"`
	AutoTagVs string `env:"DOWNPOUR_AUTO_TAGVS"`
	// MaxTags bounds the tags of a point, 0 for OpenTSDB's 8.
	// Source: tsd.storage.max_tags.
	MaxTags int `env:"DOWNPOUR_MAX_TAGS" envDefault:"8"`
	// AllowSpecialChars lists characters that names may have in addition to
	// letters, digits and - _ . /. Source: tsd.core.tag.allow_specialchars.
	AllowSpecialChars string `env:"DOWNPOUR_ALLOW_SPECIALCHARS"`
	// PutCells is single or multi, see write.Form.
	PutCells string `env:"DOWNPOUR_PUT_CELLS" envDefault:"single"`
	// EnableAppends writes points to append columns on HBase too, as the
	// embedded store always does. Source: tsd.storage.enable_appends.
	EnableAppends bool `env:"DOWNPOUR_ENABLE_APPENDS" envDefault:"false"`
	// Histograms numbers the codec of histograms, as OpenTSDB's configuration does, or is
	// the path of a .json file that does; empty takes none. Source:
	// tsd.core.histograms.config.
	Histograms string `env:"DOWNPOUR_HISTOGRAMS"`
	RollupsConfig

	// FixDuplicates makes the newer of two values of one time count. Without it a
	// query that reads them fails. Source: tsd.storage.fix_duplicates.
	FixDuplicates bool `env:"DOWNPOUR_FIX_DUPLICATES" envDefault:"false"`
	// SkipUnresolved ignores literal tag values that have no UID. Without it a query
	// with such a value fails. Source: tsd.query.skip_unresolved_tagvs.
	SkipUnresolved bool `env:"DOWNPOUR_SKIP_UNRESOLVED_TAGVS" envDefault:"false"`
	// ExpansionLimit bounds the number of tag values that a filter is expanded to for
	// the store; 0 is OpenTSDB's 4096. Source: tsd.query.filter.expansion_limit.
	ExpansionLimit int `env:"DOWNPOUR_EXPANSION_LIMIT" envDefault:"4096"`
	// Timezone is the zone of dates in queries that name none, empty for UTC.
	// Source: tsd.core.timezone.
	Timezone string `env:"DOWNPOUR_TIMEZONE"`
	LimitConfig

	// Fix lists the known errors of OpenTSDB that are corrected, see query.Fixes.
	Fix string `env:"DOWNPOUR_FIX"`
	// AllowDelete lets a query delete what it reads.
	// Source: tsd.http.query.allow_delete.
	AllowDelete bool `env:"DOWNPOUR_ALLOW_DELETE" envDefault:"false"`
	// Mode is rw, ro (no puts) or wo (no queries). Source: tsd.mode.
	Mode string `env:"DOWNPOUR_MODE" envDefault:"rw"`
	// QueryTimeout bounds the time of a query. Source: tsd.query.timeout.
	QueryTimeout time.Duration `env:"DOWNPOUR_QUERY_TIMEOUT" envDefault:"30s"`
	// PutTimeout bounds a request that writes over HTTP, as a whole.
	PutTimeout time.Duration `env:"DOWNPOUR_PUT_TIMEOUT" envDefault:"30s"`
	// Drain is how long a gateway that must end goes on to serve while /readyz says 503,
	// so that a balancer takes it out first.
	Drain time.Duration `env:"DOWNPOUR_DRAIN" envDefault:"0s"`
	// SlowQuery is how long a query takes at least that is logged; 0 logs none.
	SlowQuery time.Duration `env:"DOWNPOUR_SLOW_QUERY" envDefault:"10s"`
	// Pushdown lists pushdown servers as host:port, or is auto: then those are found that announce themselves. If it
	// is empty, queries are executed in process.
	Pushdown []string `env:"DOWNPOUR_PUSHDOWN"`
	// Profiling serves Go's profiles of the process at /debug/pprof/.
	Profiling bool `env:"DOWNPOUR_PROFILING" envDefault:"false"`
	// KnownWithin is the time after which other gateways know that a name is deleted, 0
	// for uid.KnownWithin. Only tests set it.
	KnownWithin time.Duration
	// RightsAgain is after how long HBase is first queried again for our rights, 0 for the default of
	// store.ReadCheck. Only tests set it.
	RightsAgain time.Duration
	// PushdownPatience is how long a healthy pushdown server takes at most to answer a health check, and
	// between two signs of life of a part; 0 for their defaults. Only tests set it.
	PushdownPatience time.Duration
	// Network is where the gateway listens, and dials pushdown servers; nil for the system's. Only tests set it.
	Network network.Network
	// Now is the clock of queries; nil for the system's. Only tests set it.
	Now func() time.Time
	// AllowOrigins lists browser origins in addition to the gateway's own, as
	// scheme://host[:port]; "*" is all. Source: tsd.http.request.cors_domains.
	AllowOrigins []string `env:"DOWNPOUR_ALLOW_ORIGINS"`
	// AllowHosts lists names of this gateway in addition to its machine's own, for browsers.
	AllowHosts []string `env:"DOWNPOUR_ALLOW_HOSTS"`

	// Extras are what the gateway has around its core, with their settings.
	Extras []Extra
}

// MoreSettings returns pointers to the settings of the extras, for settings.List.
func (c *Config) MoreSettings() (out []any) {
	for _, e := range c.Extras {
		if e.Settings != nil {
			out = append(out, e.Settings)
		}
	}
	return out
}

// findsPushdown reports whether pushdown servers are found, and not listed.
func (c *Config) findsPushdown() bool { return slices.Equal(c.Pushdown, []string{autoPushdown}) }

// autoPushdown is in place of a list of pushdown servers.
const autoPushdown = "auto"

// validatePushdown checks the list of pushdown servers.
func (c *Config) validatePushdown() error {
	if c.findsPushdown() {
		return nil
	}
	if slices.Contains(c.Pushdown, autoPushdown) {
		return fmt.Errorf("DOWNPOUR_PUSHDOWN: got %s, want auto alone, or HOST:PORT,…", strings.Join(c.Pushdown, ","))
	}
	_, _, err := list.Usable(c.Pushdown, func(address string) (string, error) {
		return address, settings.CheckAddress("DOWNPOUR_PUSHDOWN", address)
	})
	return err
}

// readOnly reports whether a gateway writes nothing.
func (c *Config) readOnly() bool { return c.Mode == "ro" }

// SetDefaults fills in the defaults that depend on other settings.
func (c *Config) SetDefaults() {
	// As in OpenTSDB a put on HBase makes tag keys and values, but no metric.
	if c.AutoMetrics == "" {
		c.AutoMetrics = fmt.Sprint(c.Embedded())
	}
	for _, auto := range []*string{&c.AutoTagKs, &c.AutoTagVs} {
		if *auto == "" {
			*auto = "true"
		}
	}
	c.MetaConfig.setDefaults(c.Embedded())
	c.RollupsConfig.setDefaults()
	// Only a Config that no environment was read into has none.
	if c.Mode == "" {
		c.Mode = "rw"
	}
	if c.TableState == "" {
		c.TableState = "downpour-state"
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	for _, e := range c.Extras {
		if e.Settings != nil {
			e.Settings.SetDefaults(c)
		}
	}
	c.Pushdown, c.AllowOrigins, c.AllowHosts = list.Trim(c.Pushdown), list.Trim(c.AllowOrigins), list.Trim(c.AllowHosts)
}

// Validate returns all faults at once. Each names its variable.
func (c *Config) Validate() error {
	errs := []error{c.Common.Validate("DOWNPOUR_LISTEN", c.Listen)}
	errs = append(errs, c.validateChoices()...)
	errs = append(errs, c.MetaConfig.validate()...)
	errs = append(errs, c.LimitConfig.validate()...)
	errs = append(errs, append(c.RollupsConfig.validate(), c.validateComputed())...)

	if c.QueryTimeout <= 0 {
		errs = append(errs, fmt.Errorf("DOWNPOUR_QUERY_TIMEOUT: got %s, want more than 0", c.QueryTimeout))
	}
	if c.PutTimeout <= 0 {
		errs = append(errs, fmt.Errorf("DOWNPOUR_PUT_TIMEOUT: got %s, want more than 0", c.PutTimeout))
	}
	if c.Drain < 0 {
		errs = append(errs, fmt.Errorf("DOWNPOUR_DRAIN: got %s, want a time, or 0 to stop at once", c.Drain))
	}
	if c.SlowQuery < 0 {
		errs = append(errs, fmt.Errorf("DOWNPOUR_SLOW_QUERY: got %s, want a time, or 0 for none", c.SlowQuery))
	}
	others := append(c.RollupTables(), c.TableData, c.TableUID, c.TableMeta, c.TableTree)
	if slices.Contains(others, c.TableState) {
		errs = append(errs, fmt.Errorf("DOWNPOUR_TABLE_STATE: got %s, want a table of its own", c.TableState))
	}
	if _, _, err := origin.Parse(c.AllowOrigins); err != nil {
		errs = append(errs, fmt.Errorf("DOWNPOUR_ALLOW_ORIGINS: %w", err))
	}
	if _, _, err := origin.ParseHosts(c.AllowHosts); err != nil {
		errs = append(errs, fmt.Errorf("DOWNPOUR_ALLOW_HOSTS: %w", err))
	}
	errs = append(errs, c.validatePushdown())

	for _, e := range c.Extras {
		if e.Settings != nil {
			errs = append(errs, e.Settings.Validate(c))
		}
	}
	return errors.Join(errs...)
}

// validateChoices checks the settings with a fixed set or range of values.
func (c *Config) validateChoices() (errs []error) {
	for _, v := range []struct {
		name, got string
		want      []string
	}{
		{"DOWNPOUR_AUTO_METRICS", c.AutoMetrics, []string{"true", "false"}},
		{"DOWNPOUR_AUTO_TAGKS", c.AutoTagKs, []string{"true", "false"}},
		{"DOWNPOUR_AUTO_TAGVS", c.AutoTagVs, []string{"true", "false"}},
		{"DOWNPOUR_PUT_CELLS", c.PutCells, []string{"single", "multi"}},
		{"DOWNPOUR_MODE", c.Mode, []string{"rw", "ro", "wo"}},
	} {
		if !slices.Contains(v.want, v.got) {
			errs = append(errs, fmt.Errorf("%s: got %q, want %s", v.name, v.got, strings.Join(v.want, " or ")))
		}
	}

	if c.ExpansionLimit < 0 {
		errs = append(errs, fmt.Errorf("DOWNPOUR_EXPANSION_LIMIT: got %d, want at least 0", c.ExpansionLimit))
	}
	if c.MaxTags < 0 || c.MaxTags > 255 {
		errs = append(errs, fmt.Errorf("DOWNPOUR_MAX_TAGS: got %d, want 0 to 255", c.MaxTags))
	}
	if _, err := c.histogramCodec(); err != nil {
		errs = append(errs, fmt.Errorf("DOWNPOUR_HISTOGRAMS: %w", err))
	}
	if _, err := query.ParseFixes(c.Fix); err != nil {
		errs = append(errs, fmt.Errorf("DOWNPOUR_FIX: %w", err))
	}
	if _, err := c.Location(); err != nil {
		errs = append(errs, fmt.Errorf("DOWNPOUR_TIMEZONE: got %q: %w", c.Timezone, err))
	}
	return errs
}

// Location returns the time zone of dates without one in queries, nil for UTC.
func (c *Config) Location() (*time.Location, error) {
	if c.Timezone == "" {
		return nil, nil
	}
	return zones.Load(c.Timezone)
}

// Schema returns the layout of the tables and the number of tags that a point may have.
func (c *Config) Schema() encoding.Schema {
	s := c.Common.Schema()
	if c.MaxTags > 0 {
		s.MaxTags = c.MaxTags
	}
	return s
}

// Auto returns the kinds of names that puts may make.
func (c *Config) Auto() write.Auto {
	// Without SetDefaults what is empty is as in OpenTSDB: tag keys and values are made, metrics are not.
	return write.Auto{Metrics: c.AutoMetrics == "true", TagKs: c.AutoTagKs != "false", TagVs: c.AutoTagVs != "false"}
}

// Compile returns the settings that scan plans depend on.
func (c *Config) Compile() plan.Options {
	codec, _ := c.histogramCodec() // Validate has reported the error
	return plan.Options{
		Schema:         c.Schema(),
		Table:          c.TableData,
		FixDuplicates:  c.FixDuplicates,
		HistogramCodec: int(codec),
		SkipUnresolved: c.SkipUnresolved,
		ExpansionLimit: c.ExpansionLimit,
		MaxBytes:       c.LimitMemory,
	}
}

// histogramCodec returns the codec of histograms, write.NoCodec if they are not taken.
func (c *Config) histogramCodec() (write.Codec, error) {
	text := c.Histograms
	if strings.HasSuffix(text, ".json") {
		b, err := os.ReadFile(text)
		if err != nil {
			return write.NoCodec, err
		}
		text = string(b)
	}
	return write.ParseCodec(text)
}

// form returns the form in which points are stored: appended on an embedded store and with
// EnableAppends, otherwise as PutCells says.
func (c *Config) form() write.Form {
	switch {
	case c.Embedded() || c.EnableAppends:
		return write.Appended
	case c.PutCells == "multi":
		return write.MultiPoint
	}
	return write.Single
}
