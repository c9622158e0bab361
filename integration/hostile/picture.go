package hostile

import (
	"strconv"
	"strings"
)

// Options of pictures, from the usual to what gnuplot would have run.
var pictureOptions = []struct {
	name   string
	values []string
}{
	{"wxh", []string{
		"800x400", "100x100", "1024x768", "3840x2160", "32767x256", "256x32767", "32767x32767",
		"100000x100000", "0x0", "-1x5", "99999999999999999999x1", "x", "",
	}},
	{"yrange", []string{
		"[0:]", "[0:100]", "[100:0]", "[1e-300:1e300]", "[-1e308:1e308]", "[1:1]", "[:5]", "[0:1e999]",
		`[0:1];system("id")`,
	}},
	{"y2range", []string{"[0:]", "[5:1]", "[0:0.0000001]"}},
	{"ylabel", []string{
		"load", "`id`", "%60id%60", "\x00\x1b", "</text><script>alert(1)</script>", "é漢字\u202e",
		strings.Repeat("x", 2000),
	}},
	{"y2label", []string{"right", ""}},
	{"title", []string{"a title", `"; system "id"`, strings.Repeat("é", 500)}},
	{
		"yformat",
		[]string{"%.2f", "%.1s%c", "%25.2f", "%99999999999f", "%*d", "%n%n%n", "%s%s%s%s", strings.Repeat("%f", 50)},
	},
	{"xformat", []string{"%H:%M", "%Y-%m-%d", "%", "%%", "%E", strings.Repeat("%A", 50)}},
	{"key", []string{"out right top box", "below horiz", "center center", "nope", strings.Repeat("left ", 200)}},
	{"bgcolor", []string{"x000000", "transparent", "x00000"}},
	{"fgcolor", []string{"XFFffFF", "red"}},
	{"style", []string{"linespoint", "points", "circles", "dots", "lines"}},
	{
		"smooth",
		[]string{"unique", "frequency", "cumulative", "csplines", "mcsplines", "bezier", "sbezier", "zsort", "nope"},
	},
	{"o", []string{"axis x1y2", "axis x1y2; system('id')", ""}},
	{"tz", []string{"UTC", "Asia/Kathmandu", "Australia/Lord_Howe", "../../etc/passwd", "nowhere"}},
}

// picture asks for a usual question, or a large one, as a picture, as text or as counts.
func (d *drawing) picture() Request {
	q := question{}
	for range 1 + max(0, d.r.IntN(6)-3) {
		q.subs = append(q.subs, d.usualSub())
	}
	m := metricNamed(q.subs[0].metric)
	begin := m.Start / 1000
	q.start, q.end = strconv.FormatInt(begin, 10), strconv.FormatInt(begin+int64(pick(d, []int{60, 3600, 36_000})), 10)
	if d.one(6) { // dates that no picture has, and ranges that are long
		q.start = pick(d, []string{"0", "1", "1h-ago", "now", "9999999999", "2013/01/01"})
		q.end = pick(d, []string{"", "now", "4294967295", "4294967296", "9999999999999"})
	}

	p := parameters{pick(d, []string{"png", "png", "png", "svg", "svg", "ascii", "json", "png&json", "nothing"})}
	for range d.r.IntN(6) {
		option := pick(d, pictureOptions)
		p.add(option.name, pick(d, option.values))
	}
	for _, flag := range []string{"ylog", "y2log", "nokey", "global_annotations", "no_annotations", "nocache"} {
		p.flag(d.one(8), flag)
	}
	_, query, _ := strings.Cut(q.get(), "?")
	message := message{method: "GET", path: append(p, query).on("/q")}
	if d.one(6) {
		message.method = pick(d, []string{"POST", "PUT"})
	}
	return message.request()
}
