package main

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	osuser "os/user"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"downpour/gateway"
	"downpour/gateway/extra/compaction"
	"downpour/gateway/extra/tools"
	"downpour/pushdown/process/settings"
	"downpour/pushdown/process/version"
)

// Every program knows every variable of the gateway. Otherwise a pushdown server could not be
// started from the same environment.
func TestConfig_known(t *testing.T) {
	for _, v := range settings.List(new(gateway.Config)) {
		if !slices.Contains(settings.Known(), v.Name) {
			t.Errorf("%s is not in settings.Known", v.Name)
		}
	}
}

// Keys of OpenTSDB's configuration file are settings, unless a variable sets them. A file or
// variable that is wrong is refused.
func TestConfigure(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "opentsdb.conf")
	text := "tsd.storage.salt.width=1\ntsd.storage.max_tags=12\ntsd.storage.enable_appends=true\n" +
		"tsd.storage.hbase.zk_quorum=zk\n" +
		"tsd.core.auto_create_metrics=true\ntsd.network.port=4243\ntsd.query.skip_unresolved_tagvs=true\n" +
		"tsd.http.cachedir=/tmp\n"
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cfg, notes, err := configure(map[string]string{"DOWNPOUR_OPENTSDB_CONF": conf, "DOWNPOUR_LISTEN": "127.0.0.1:9"})
	if err != nil {
		t.Fatal(err)
	}
	s := cfg.Schema()
	if s.SaltWidth != 1 || s.MaxTags != 12 || cfg.Embedded() || !cfg.EnableAppends || cfg.AutoMetrics != "true" ||
		cfg.Listen != "127.0.0.1:9" || !cfg.Compile().SkipUnresolved {
		t.Errorf("got %+v", cfg)
	}
	if len(notes) != 2 || !strings.Contains(notes[0], "tsd.http.cachedir") ||
		!strings.Contains(notes[1], "tsd.network.port") {
		t.Errorf("notes %q, want those of cachedir and port", notes)
	}
	for _, wrong := range []map[string]string{
		{"DOWNPOUR_OPENTSDB_CONF": conf + ".not"}, {"DOWNPOUR_MODE": "x"}, {"DOWNPOUR_MAX_TAGS": "300"},
		{"DOWNPOUR_TIMEZONE": "Atlantis"},
		{"DOWNPOUR_LIMIT_BYTES": "-1"}, {"DOWNPOUR_STOER": "x"}, {"DOWNPOUR_FIX_DUPLICATES": "perhaps"},
	} {
		if _, _, err := configure(wrong); err == nil {
			t.Errorf("%q is taken, want an error", wrong)
		}
	}
}

// Every setting that is a number may have a unit, also those that may be off.
//
//fault:numbers-without-units settings.NumberParsers[env.ParserFunc]() => nil
func TestConfigure_numbers(t *testing.T) {
	n := 0
	for _, v := range settings.List(new(gateway.Config)) {
		cfg := new(gateway.Config)
		field := func() reflect.Value { return variable(reflect.ValueOf(cfg).Elem(), v.Name) }
		kind := field().Type()
		if kind != reflect.TypeFor[int]() && kind != reflect.TypeFor[int64]() {
			continue
		}
		n++
		cfg, _, _ = configure(map[string]string{v.Name: "2K"}) // an error says that it is too much for some
		if got := field().Int(); got != 2000 {
			t.Errorf("%s=2K: got %d, want 2000", v.Name, got)
		}
		if _, _, err := configure(map[string]string{v.Name: "2k"}); err == nil ||
			!strings.HasPrefix(err.Error(), v.Name+`: `) ||
			!strings.Contains(err.Error(), `got "2k", want a number, such as `) {
			t.Errorf("%s=2k: got %v, want an error that names the variable and the form", v.Name, err)
		}
	}
	if n < 15 {
		t.Errorf("found %d variables that are numbers, want 15 or more", n)
	}

	cfg, _, err := configure(map[string]string{
		"DOWNPOUR_STORE": "hbase:zk", "DOWNPOUR_MEMORY": "1G", "DOWNPOUR_RESULT_CACHE": "1M",
		"DOWNPOUR_COMPACT": "1K", "DOWNPOUR_ROLLUP_RATE": "1M",
	})
	if err != nil {
		t.Fatal(err)
	}
	memory, _ := cfg.MemoryBytes()
	cache, _ := cfg.ResultCacheBytes()
	rate, _ := gateway.SettingsOf[compaction.Settings](cfg).CompactRate()
	if memory != 1_000_000_000 || cache != 1_000_000 || rate != 1000 {
		t.Errorf("got %d bytes, %d of the cache, %v rows a second, want 1,000,000,000, 1,000,000 and 1,000",
			memory, cache, rate)
	}
}

// variable returns the field of a variable, also of a struct inside.
func variable(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if got, _, _ := strings.Cut(f.Tag.Get("env"), ","); got == name {
			return v.Field(i)
		}
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			if inner := variable(v.Field(i), name); inner.IsValid() {
				return inner
			}
		}
	}
	return reflect.Value{}
}

// An error about a value of an opentsdb.conf names the file and its keys, not the variable alone; one
// about a variable that is set names that alone.
//
//fault:conf-error-without-key c.name, blamed, => c.name, blamed[:0],
func TestConfigure_blamesKey(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "opentsdb.conf")
	set := map[string]string{"DOWNPOUR_OPENTSDB_CONF": conf}
	f := func(text, want string) {
		t.Helper()
		if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		starts := func(line string) bool { return strings.HasPrefix(line, want) }
		_, _, err := configure(set)
		if err == nil || !slices.ContainsFunc(strings.Split(err.Error(), "\n"), starts) {
			t.Errorf("%q: got %v, want a line with %q", text, err, want)
		}
	}
	f("tsd.core.timezone=Atlantis", conf+`: tsd.core.timezone: DOWNPOUR_TIMEZONE: got "Atlantis"`)
	f("tsd.storage.salt.width=9", conf+": tsd.storage.salt.width: DOWNPOUR_SALT_*, ")
	f("tsd.storage.uid.width.metric=9\ntsd.storage.salt.width=9",
		conf+": tsd.storage.salt.width, tsd.storage.uid.width.metric: DOWNPOUR_SALT_*, ")
	f("tsd.network.bind=0.0.0.0\ntsd.core.timezone=Atlantis", conf+": tsd.network.bind: DOWNPOUR_LISTEN=0.0.0.0:4242: ")
	f("tsd.rollups.enable=true\ntsd.rollups.config={",
		conf+": tsd.rollups.config, tsd.rollups.enable: DOWNPOUR_ROLLUPS: ")
	f("tsd.storage.max_tags=99999999999999999999", conf+": tsd.storage.max_tags: got ")
	f("tsd.storage.max_tags=999999999999999999", conf+": tsd.storage.max_tags: DOWNPOUR_MAX_TAGS: ")
	set["DOWNPOUR_TIMEZONE"] = "Lemuria"
	f("tsd.core.timezone=Atlantis", `DOWNPOUR_TIMEZONE: got "Lemuria"`)
}

// Where TSDs set the times of cells, nothing is compacted: the file that says so ends the start.
func TestConfigure_compaction(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "opentsdb.conf")
	set := map[string]string{"DOWNPOUR_OPENTSDB_CONF": conf, "DOWNPOUR_COMPACT": "500"}
	for value, want := range map[string]string{"false": "", "true": "tsd.storage.use_otsdb_timestamp: got "} {
		if err := os.WriteFile(conf,
			[]byte("tsd.storage.hbase.zk_quorum=zk\ntsd.storage.use_otsdb_timestamp="+value+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		cfg, _, err := configure(set)
		if (err == nil) != (want == "") ||
			err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "compact")) {
			t.Errorf("%s: %v, want %q and why rows are not compacted", value, err, want)
		}
		if rate, _ := gateway.SettingsOf[compaction.Settings](cfg).CompactRate(); rate != 500 {
			t.Errorf("%s: rate %v, want 500", value, rate)
		}
	}
}

// With -h the commands are listed, and then the flags. Only a command that changes something shows -dry-run.
func TestRun_help(t *testing.T) {
	f := func(want, not string, args ...string) {
		t.Helper()
		var o, e bytes.Buffer
		if err := run(args, nil, &o, &e); err != nil {
			t.Errorf("%q: %v", args, err)
		}
		text := o.String() + e.String()
		if !strings.Contains(text, want) || not != "" && strings.Contains(text, not) {
			t.Errorf("%q: got %s, want %q and not %q", args, text, want, not)
		}
	}
	f("gateway scan [--import", "", "-h")
	f("\nflags:\n  -compression", "", "-h")
	f("-top int", "-dry-run", "help", "series")
	f("  -dry-run\n", "", "help", "compact")
}

// The arguments choose what runs: the gateway or one of its tools.
func TestRun(t *testing.T) {
	t.Setenv("DOWNPOUR_STORE", "pebble:"+filepath.Join(t.TempDir(), "data"))
	f := func(in, out, fault string, args ...string) {
		t.Helper()
		var o, e bytes.Buffer
		err := run(args, strings.NewReader(in), &o, &e)
		if fault == "" && err != nil || fault != "" && (err == nil || !strings.Contains(err.Error(), fault)) {
			t.Errorf("%q: error %v, want %q", args, err, fault)
		}
		if !strings.Contains(o.String(), out) {
			t.Errorf("%q: %q, want %q", args, &o, out)
		}
	}
	f("", "", `unknown command "nonesuch"`, "nonesuch")
	f("", "gateway mkmetric NAME", "", "help")
	f("", version.String()+"\n", "", "version")
	f("", version.String()+"\n", "", "-version")
	f("", "gateway uid grep metrics '^sys\\.'", "", "help", "uid")
	for _, c := range tools.Commands() {
		f("", "usage: gateway "+c.Name, "", "help", c.Name)
		f("", "  gateway "+c.Name+" ", "", "help", c.Name)
	}
	f("", "", "no help for", "help", "nonesuch")
	f("", "", "no such file", "query", "1", "sum", "m")
	f("m 1356998400 1 a=b\n", "1 points imported", "", "import", "-")
	f("", "m 1356998400000 1 {a=b}\n", "", "query", "1356998400", "1356998401", "sum", "m")
	f("", "m 1356998400 1 a=b\n", "", "export", "1356998400", "m")
	// A tool does not listen, so it accepts an address for which a gateway would need tokens.
	t.Setenv("DOWNPOUR_LISTEN", "0.0.0.0:4242")
	f("", "m 1356998400 1 a=b\n", "", "export", "1356998400", "m")
	f(`{"table":"tsdb","row":"000001","family":"id","qualifier":"6d657472696373","value":"000001"}`, "==", "", "dump")
}

// A tool that changes something on the store itself logs who ran it, as the settings of the log say.
func TestRun_audited(t *testing.T) {
	t.Setenv("DOWNPOUR_STORE", "pebble:"+filepath.Join(t.TempDir(), "data"))
	u, err := osuser.Current()
	if err != nil {
		t.Fatal(err)
	}
	want := ` command=mkmetric arguments=sys.cpu user=` + u.Username + ` store=pebble:`
	for _, level := range []string{"info", "warn"} {
		t.Setenv("DOWNPOUR_LOG_LEVEL", level)
		var out, errs bytes.Buffer
		if err := run([]string{"mkmetric", "sys.cpu"}, nil, &out, &errs); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(errs.String(), want); level == "info" && n != 2 || level == "warn" && n != 0 {
			t.Errorf("level %s: got %s, want lines with %s at info alone", level, &errs, want)
		}
	}

	var out, logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	if err := createTables(func() error { return nil }, "hbase:zk", "LZ4", &out, log); err != nil || out.Len() == 0 {
		t.Errorf("%v, printed %q", err, &out)
	}
	if err := createTables(func() error { return errors.New("no region") }, "hbase:zk", "LZ4",
		io.Discard, log); err == nil {
		t.Error("an error is dropped")
	}
	want = ` command=-create-tables arguments="-compression LZ4" user=` + u.Username + ` store=hbase:zk`
	if got := logged.String(); strings.Count(got, want) != 4 || strings.Count(got, "outcome=done") != 1 ||
		strings.Count(got, `outcome="no region"`) != 1 {
		t.Errorf("got %s, want %s twice, with their outcomes", got, want)
	}
}

// A gateway is asked whether it lives at the address on which it listens by its settings.
func TestRun_probe(t *testing.T) {
	asked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer asked.Close()
	t.Setenv("DOWNPOUR_LISTEN", asked.Listener.Addr().String())
	if err := run([]string{"-probe", "/healthz"}, nil, io.Discard, io.Discard); err != nil {
		t.Error(err)
	}
	if err := run([]string{"-probe", "/readyz"}, nil, io.Discard, io.Discard); err == nil ||
		!strings.Contains(err.Error(), "503") {
		t.Errorf("error %v, want the status 503", err)
	}
}

// Nobody reads what goes to a file, to memory or to /dev/null: a command may write bytes there that are no text.
func TestTerminal(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	device, err := os.Open("/dev/ptmx") // a terminal's other end
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	for _, c := range []struct {
		w    io.Writer
		want bool
	}{{file, false}, {null, false}, {&bytes.Buffer{}, false}, {device, true}} {
		if got := terminal(c.w); got != c.want {
			t.Errorf("%T %v: %t, want %t", c.w, c.w, got, c.want)
		}
	}
}
