package opentsdbconf

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/pushdown/process/settings"
)

// translate returns environ together with the variables of a configuration file, and the notes.
func translate(t *testing.T, text string, environ map[string]string) (map[string]string, []string) {
	t.Helper()
	c, err := Parse("tsdb.conf", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	merged, notes, err := c.Environment(environ)
	if err != nil {
		t.Fatal(err)
	}
	return merged, notes
}

// A file as users have it is translated: comments, all separators, escapes, continued lines, and
// keys that Downpour does not honour: each of these gets a note.
func TestConf_Environment(t *testing.T) {
	merged, notes := translate(t, `
# --------- NETWORK ----------
tsd.network.port = 4243
tsd.network.bind=0.0.0.0
! tsd.network.worker_threads = 8
tsd.network.tcp_no_delay = true

tsd.http.staticroot = /usr/share/opentsdb/static/
tsd.http.request.cors_domains : http://a:80,http://b
tsd.core.auto_create_metrics = Yes
tsd.core.auto_create_tagvs = 0
tsd.core.tag.allow_specialchars = \u003a;
tsd.core.timezone = Europe/Berlin
tsd.storage.salt.width 1
tsd.query.limits.data_points.default = 5
tsd.query.limits.overrides.config = /etc/limits.json
tsd.storage.salt.buckets = \
    8
tsd.storage.fix_duplicates = true
tsd.storage.enable_compaction = false
tsd.storage.hbase.data_table = prod-tsdb
tsd.storage.hbase.zk_quorum = zk1:2182, zk2
tsd.storage.hbase.zk_basedir = /hbase-unsecure
tsd.storage.hbase.scanner.maxNumRows = 256
tsd.mode = ro
tsd.query.timeout = 0
tsd.my.plugin = x
`, map[string]string{"DOWNPOUR_SALT_BUCKETS": "16", "DOWNPOUR_TIMEZONE": "", "HOME": "/root"})
	want := map[string]string{
		"HOME": "/root", "DOWNPOUR_SALT_BUCKETS": "16",
		"DOWNPOUR_LISTEN": "0.0.0.0:4243", "DOWNPOUR_ALLOW_ORIGINS": "http://a:80,http://b",
		"DOWNPOUR_AUTO_METRICS": "true", "DOWNPOUR_AUTO_TAGVS": "false", "DOWNPOUR_ALLOW_SPECIALCHARS": ":;",
		"DOWNPOUR_TIMEZONE": "Europe/Berlin", "DOWNPOUR_SALT_WIDTH": "1", "DOWNPOUR_FIX_DUPLICATES": "true",
		"DOWNPOUR_TABLE_DATA": "prod-tsdb", "DOWNPOUR_STORE": "hbase:zk1:2182,zk2/hbase-unsecure",
		"DOWNPOUR_MODE":         "ro",
		"DOWNPOUR_LIMIT_POINTS": "5", "DOWNPOUR_LIMIT_OVERRIDES": "/etc/limits.json",
	}
	if diff := cmp.Diff(want, merged); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{
		"tsdb.conf: tsd.http.staticroot is not honoured: the web page is Downpour's own",
		"tsdb.conf: tsd.my.plugin is not honoured: it is not known",
		"tsdb.conf: tsd.network.tcp_no_delay is not honoured: it tunes OpenTSDB and changes no answer",
		"tsdb.conf: tsd.query.timeout is not honoured: DOWNPOUR_QUERY_TIMEOUT keeps its default: " +
			"no bound at all is not allowed",
		"tsdb.conf: tsd.storage.hbase.scanner.maxNumRows is not honoured: it tunes OpenTSDB and changes no answer",
		"tsdb.conf: tsd.storage.salt.buckets is not honoured: DOWNPOUR_SALT_BUCKETS is set",
	}, notes); diff != "" {
		t.Error(diff)
	}
}

func TestConf_Environment_store(t *testing.T) {
	f := func(text, store string, environ map[string]string, notes int) {
		t.Helper()
		merged, got := translate(t, text, environ)
		if merged["DOWNPOUR_STORE"] != store || len(got) != notes {
			t.Errorf("%q: DOWNPOUR_STORE=%s and notes %q, want %s and %d",
				text, merged["DOWNPOUR_STORE"], got, store, notes)
		}
	}
	f("tsd.storage.hbase.zk_quorum=a", "hbase:a/hbase", nil, 0)
	f("tsd.storage.hbase.zk_basedir=/b", "hbase:localhost/b", nil, 0)
	f("tsd.storage.hbase.zk_quorum=a", "pebble:x", map[string]string{"DOWNPOUR_STORE": "pebble:x"}, 1)
	f("", "pebble:x", map[string]string{"DOWNPOUR_STORE": "pebble:x"}, 0)
	f("", "", nil, 1) // a note says that the store keeps its default
}

func TestConf_Environment_listen(t *testing.T) {
	set := map[string]string{"DOWNPOUR_STORE": "pebble:x"}
	f := func(text, listen string, notes int) {
		t.Helper()
		merged, got := translate(t, text, set)
		if merged["DOWNPOUR_LISTEN"] != listen || len(got) != notes {
			t.Errorf("%q: DOWNPOUR_LISTEN=%s and notes %q, want %s and %d",
				text, merged["DOWNPOUR_LISTEN"], got, listen, notes)
		}
	}
	f("", "", 0)
	f("tsd.network.port=1", "127.0.0.1:1", 1)
	f("tsd.network.bind=10.0.0.1", "10.0.0.1:4242", 0)
	f("tsd.network.bind=::1\ntsd.network.port=2", "[::1]:2", 0)
}

func TestConf_Environment_timeout(t *testing.T) {
	merged, notes := translate(t, "tsd.query.timeout = 2500", map[string]string{"DOWNPOUR_STORE": "pebble:x"})
	if merged["DOWNPOUR_QUERY_TIMEOUT"] != "2500ms" || len(notes) != 0 {
		t.Errorf("%q, notes %q", merged["DOWNPOUR_QUERY_TIMEOUT"], notes)
	}
}

// All values that cannot be read are in the error, with their keys.
func TestConf_Environment_wrong(t *testing.T) {
	c, err := Parse("tsdb.conf", []byte("tsd.storage.salt.width=x\ntsd.mode=rx\ntsd.network.port=99999\n"+
		"tsd.storage.max_tags=-1\ntsd.http.request.cors_domains=localhost\ntsd.storage.hbase.uid_table="))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = c.Environment(nil)
	for _, want := range []string{
		"tsd.storage.salt.width: got \"x\"", "tsd.mode", "tsd.network.port",
		`cors_domains: got "localhost", want * or origins`, "tsd.storage.max_tags",
		"tsd.storage.hbase.uid_table",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A constant key that asks for what Downpour does anyway gives no note; any other value does.
func TestConf_Environment_constant(t *testing.T) {
	set := map[string]string{"DOWNPOUR_STORE": "pebble:x"}
	for key, c := range constant {
		if slices.Contains(demanded, key) {
			continue
		}
		for _, value := range []string{"true", "false", "0", "7"} {
			_, notes := translate(t, key+"="+value, set)
			want := 1
			if c.value == value || c.value == "false" && (value == "0" || value == "7") {
				want = 0
			}
			if len(notes) != want {
				t.Errorf("%s=%s: notes %q, want %d", key, value, notes, want)
			}
		}
	}
}

// A key by which others would miss points is an error at another value than Downpour's.
func TestConf_Environment_demanded(t *testing.T) {
	set := map[string]string{"DOWNPOUR_STORE": "pebble:x"}
	for value, want := range map[string]bool{"false": true, "0": true, "true": false, "TRUE": false} {
		c, err := Parse("tsd.conf", []byte("tsd.storage.use_otsdb_timestamp = "+value))
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = c.Environment(set)
		ok := err == nil
		if ok != want || !ok && !strings.Contains(err.Error(), "tsd.storage.use_otsdb_timestamp: got ") {
			t.Errorf("%s: %v, want %v", value, err, want)
		}
	}
}

// Every variable that an honoured key sets is read by a program, and no honoured key is constant.
func TestHonoured_known(t *testing.T) {
	for key, r := range honoured {
		if !slices.Contains(settings.Known(), r.variable) {
			t.Errorf("%s becomes %s, which nothing reads", key, r.variable)
		}
		if _, ok := constant[key]; ok {
			t.Errorf("%s is in both tables", key)
		}
	}
}

// For any file, every key sets a variable, gives a note, or is in the error, unless it is constant
// and asks for what Downpour does anyway.
func FuzzParse(f *testing.F) {
	f.Add([]byte("tsd.network.port = 4242\ntsd.mode: ro\n# x\na\\\n b = \\u00e9"))
	f.Add([]byte("tsd.storage.hbase.zk_quorum=a,,b\ntsd.network.bind=[::1]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse("f", text)
		if err != nil {
			return
		}
		merged, notes, err := c.Environment(map[string]string{"DOWNPOUR_STORE": "pebble:x"})
		for key := range c.values {
			told := slices.ContainsFunc(notes, func(n string) bool {
				return strings.Contains(n, key+" is not honoured")
			})
			told = told || err != nil && strings.Contains(err.Error(), key)
			_, used := merged[honoured[key].variable]
			if k, ok := constant[key]; ok && k.is(c.values[key]) {
				continue
			}
			if !told && !used && !slices.Contains(composed, key) {
				t.Errorf("%q is neither used nor in the notes %q nor in the error %v", key, notes, err)
			}
		}
	})
}

// The rollup configuration is used only if rollups are enabled, and then it must be given.
func TestEnvironment_rollups(t *testing.T) {
	const store = "tsd.storage.hbase.zk_quorum=a\n"
	f := func(text, want string, notes ...string) {
		t.Helper()
		got, gotNotes := translate(t, store+text, nil)
		if got["DOWNPOUR_ROLLUPS"] != want {
			t.Errorf("%s: got %q, want %q", text, got["DOWNPOUR_ROLLUPS"], want)
		}
		if len(gotNotes) != len(notes) || len(notes) > 0 && !strings.Contains(gotNotes[0], notes[0]) {
			t.Errorf("%s: notes %q, want %q", text, gotNotes, notes)
		}
	}
	f("tsd.rollups.enable=true\ntsd.rollups.config=/etc/rollups.json", "/etc/rollups.json")
	f("tsd.rollups.enable=false\ntsd.rollups.config=/etc/rollups.json", "", "tsd.rollups.enable is not true")
	f("tsd.rollups.config=/etc/rollups.json", "", "tsd.rollups.enable is not true")
	f("tsd.rollups.enable=false", "")

	c, err := Parse("conf", []byte(store+"tsd.rollups.enable=true"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Environment(nil); err == nil || !strings.Contains(err.Error(), "tsd.rollups.config: got \"\"") {
		t.Errorf("got %v, want that tsd.rollups.config is missing", err)
	}
	got, _ := translate(t,
		store+"tsd.rollups.tag_raw=yes\ntsd.rollups.agg_tag_key=agg\ntsd.rollups.block_derived=false", nil)
	if got["DOWNPOUR_ROLLUP_TAG_RAW"] != "true" || got["DOWNPOUR_ROLLUP_TAG_KEY"] != "agg" ||
		got["DOWNPOUR_ROLLUP_BLOCK_DERIVED"] != "false" {
		t.Errorf("got %v, want tag raw true, tag key agg and block derived false", got)
	}
}

// securedConf is the configuration of a TSD for a secured HBase.
const securedConf = "tsd.storage.hbase.zk_quorum=a\nhbase.security.authentication=Kerberos\n" +
	"hbase.kerberos.regionserver.principal=hbase/_HOST@R\nhbase.rpc.protection=PRIVACY\n" +
	"hbase.sasl.clientconfig=Tsdb\n"

var securityCases = []struct {
	name, text            string
	environ               map[string]string
	principal, protection string
	section               string
	notes                 []string
	err                   string
}{
	{
		name:       "on",
		text:       securedConf,
		environ:    map[string]string{"DOWNPOUR_HBASE_KERBEROS": "keytab:/k:downpour@R"},
		principal:  "hbase/_HOST@R",
		protection: "privacy",
		notes:      []string{"hbase.sasl.clientconfig"},
	},
	{
		name:       "no keytab",
		text:       securedConf,
		principal:  "hbase/_HOST@R",
		protection: "privacy",
		err:        "whose section Tsdb counts",
	},
	{
		name:       "JAAS",
		text:       securedConf,
		environ:    map[string]string{"DOWNPOUR_HBASE_JAAS": "/j"},
		principal:  "hbase/_HOST@R",
		protection: "privacy",
		section:    "Tsdb",
	},
	{
		name:       "JAAS and a keytab",
		text:       securedConf,
		environ:    map[string]string{"DOWNPOUR_HBASE_JAAS": "/j", "DOWNPOUR_HBASE_KERBEROS": "keytab:/k:p"},
		principal:  "hbase/_HOST@R",
		protection: "privacy",
		section:    "Tsdb",
	},
	{
		name:       "JAAS and its section",
		text:       securedConf,
		environ:    map[string]string{"DOWNPOUR_HBASE_JAAS": "/j", "DOWNPOUR_HBASE_JAAS_SECTION": "Mine"},
		principal:  "hbase/_HOST@R",
		protection: "privacy",
		section:    "Mine",
		notes:      []string{"hbase.sasl.clientconfig"},
	},
	{
		name:       "embedded",
		text:       securedConf,
		environ:    map[string]string{"DOWNPOUR_STORE": "pebble:x"},
		principal:  "hbase/_HOST@R",
		protection: "privacy",
		notes:      []string{"zk_quorum"},
	},
	{
		name:  "disabled",
		text:  securedConf + "hbase.security.auth.enable=false\n",
		notes: []string{"regionserver.principal", "rpc.protection", "sasl.clientconfig"},
	},
	{
		name:  "simple",
		text:  strings.ReplaceAll(securedConf, "Kerberos", "simple"),
		notes: []string{"regionserver.principal", "rpc.protection", "sasl.clientconfig"},
	},
}

// The keys of a secured HBase count if Kerberos is on. The keytab must be named outside of the
// file; if it is not, that is an error, and not a connection without authentication.
func TestEnvironment_security(t *testing.T) {
	for _, tc := range securityCases {
		c, err := Parse("conf", []byte(tc.text))
		if err != nil {
			t.Fatal(err)
		}
		got, notes, err := c.Environment(tc.environ)
		if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: got error %v, want %q", tc.name, err, tc.err)
		}
		if got["DOWNPOUR_HBASE_PRINCIPAL"] != tc.principal || got["DOWNPOUR_HBASE_PROTECTION"] != tc.protection {
			t.Errorf("%s: got %v, want principal %q and protection %q", tc.name, got, tc.principal, tc.protection)
		}
		if got["DOWNPOUR_HBASE_JAAS_SECTION"] != tc.section {
			t.Errorf("%s: got section %q, want %q", tc.name, got["DOWNPOUR_HBASE_JAAS_SECTION"], tc.section)
		}
		if all := strings.Join(notes, "\n"); len(notes) != len(tc.notes) {
			t.Errorf("%s: notes %q, want %q", tc.name, notes, tc.notes)
		} else {
			for _, n := range tc.notes {
				if !strings.Contains(all, n) {
					t.Errorf("%s: notes %q, want %q", tc.name, notes, tc.notes)
				}
			}
		}
	}
}

// No value of a key that is not honoured is shown, whether it is known or not and whatever the reason is: plugins and
// HBase's client have passwords there.
//
//fault:secret-in-notes key, reason)) => key+t.conf.values[key], reason))
func TestConf_Environment_secrets(t *testing.T) {
	const secret = "5eCr3t-of-opentsdb"
	keys := []string{
		"tsd.search.rabbitmq.password", "tsd.http.keystore.password", "hbase.sasl.jaas.config", "x",
		rollupsKey, clientConfigKey, serverPrincipalKey, protectionKey,
	}
	for key := range constant {
		if !slices.Contains(demanded, key) {
			keys = append(keys, key)
		}
	}
	for _, r := range reasons {
		keys = append(keys, r.prefix+"password")
	}
	var text strings.Builder
	set := map[string]string{"DOWNPOUR_STORE": "pebble:x", "DOWNPOUR_LISTEN": "127.0.0.1:1"}
	for key, r := range honoured { // not honoured either where their variables are set
		if v, err := r.read(secret); err == nil && v == secret {
			keys, set[r.variable] = append(keys, key), "ours"
		}
	}
	for _, key := range keys {
		text.WriteString(key + " = " + secret + "\n")
	}
	merged, notes := translate(t, text.String(), set)
	for _, key := range keys {
		told := slices.ContainsFunc(notes, func(n string) bool {
			return strings.HasPrefix(n, "tsdb.conf: "+key+" is not honoured: ")
		})
		if f, ok := constant[key]; !told && !(ok && f.is(secret)) {
			t.Errorf("%s: no note tells of it", key)
		}
	}
	for variable, value := range merged {
		if strings.Contains(value, secret) {
			t.Errorf("%s has the value of a key that is not honoured", variable)
		}
	}
	for _, n := range notes {
		if strings.Contains(n, secret) {
			t.Errorf("a note tells a value: %s", n)
		}
	}
}
