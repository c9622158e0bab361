package peer

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"downpour/bench/report"
	"downpour/bench/workload"
)

// says is a server that gives one answer, and notes what it was asked.
func says(t *testing.T, name string, status int, body string, prometheus bool) (*Server, *[]url.URL) {
	var asked []url.URL
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, *r.URL)
		w.WriteHeader(status)
		w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	t.Cleanup(CloseIdle)
	server := At(name, s.URL+"/")
	server.Prometheus = prometheus
	return server, &asked
}

const (
	one = `[{"metric":"cpu.user","tags":{"host":"a","dc":"x"},"aggregateTags":[],"dps":{"1699999200":62.5,` +
		`"1699999500":3.0}},{"metric":"cpu.user","tags":{"host":"b"},"aggregateTags":[],"dps":{"1699999200":1.0}}]`
	other = `[{"metric":"cpu.user","tags":{"host":"b"},"aggregateTags":[],"dps":{"1699999200":1.0}},` +
		`{"metric":"cpu.user","tags":{"host":"a","dc":"x"},"aggregateTags":[],` +
		`"dps":{"1699999200":62.5,"1699999500":3.0000000000001}}]`
	prom = `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"host":"a"},` +
		`"values":[[1699999499,"62.5"],[1699999799,"3"]]},{"metric":{"host":"b"},"values":[[1699999499,"1"]]}]}}`
)

// Agree names the first difference. What Prometheus does differently, such as the times of buckets,
// is none; AgreeInValues does not mind the order of groups or the last bits.
func TestAgree(t *testing.T) {
	q := workload.Query{Start: 1699999200, End: 1699999799, M: "sum:5m-avg:cpu.user{host=*}"}
	f := func(want, got, difference string, values, prometheus bool) {
		t.Helper()
		a, asked := says(t, "A", 200, want, false)
		b, _ := says(t, "B", 200, got, prometheus)
		agree := Agree
		if values {
			agree = AgreeInValues
		}
		err := agree(t.Context(), a, b, q)
		if difference == "" && err != nil ||
			difference != "" && (err == nil || !strings.Contains(err.Error(), difference)) {
			t.Errorf("%v, want %q", err, difference)
		}
		if errors.Is(err, ErrDiffer) && len(*asked) != tries {
			t.Errorf("asked %d times before they are said to differ, want %d", len(*asked), tries)
		}
	}
	f(one, one, "", false, false)
	f(one, other, "[0].dps.1699999200: value, want 62.5, got 1.0", false, false)
	f(one, other, "", true, false)
	f(one, strings.Replace(one, "62.5", "62.4", 1), "[0].dps.1699999200: value, want 62.5, got 62.4", false, false)
	f(one, prom, "", false, true)
	f(one, strings.Replace(prom, `"3"`, `"4"`, 1), "group {host=a} at 1699999500: want 3, got 4", false, true)
	f(one, strings.Replace(prom, `"62.5"`, `"62.500001"`, 1),
		"group {host=a} at 1699999200: want 62.5, got 62.500001", false, true)
	f(one, strings.Replace(prom, `,[1699999799,"3"]`, "", 1), "at 1699999500: want 3, got nothing", false, true)
	f(one, `{"data":{"result":[]}}`, "group {host=a}: want 2 points, got 0", false, true)
	f("[]", "[]", "the answer is empty", false, false)
	f("[]", "[]", "the answer is empty", true, false)
	f(one, "<html>", "no JSON", false, false)
}

// AgreeInValues compares any query of two servers with OpenTSDB's API, group by group.
func TestAgreeInValues_anyQuery(t *testing.T) {
	a, _ := says(t, "A", 200, one, false)
	same, _ := says(t, "B", 200, other, false)
	less, _ := says(t, "B", 200, `[{"metric":"cpu.user","tags":{"host":"a","dc":"x"},"aggregateTags":[],`+
		`"dps":{"1699999200":62.5,"1699999500":3.0}}]`, false)
	for _, text := range []string{"none:rate{counter,1}:cpu.user", "sum:cpu.user", "p99:1h-avg-zero:cpu.user{host=*}"} {
		q := workload.Query{Start: 1699999200, End: 1699999799, M: text}
		if err := AgreeInValues(t.Context(), a, same, q); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if err := AgreeInValues(t.Context(), a, less, q); !errors.Is(err, ErrDiffer) ||
			!strings.Contains(err.Error(), "group {host=b}: want 1 points, got 0") {
			t.Errorf("%s: error %v, want the group host=b, which the second server lacks", text, err)
		}
	}
}

// A refusal is an error on one line, whatever page it comes with.
func TestAsk_refused(t *testing.T) {
	s, _ := says(t, "A", 503, "<html>\n<p>later</p>", false)
	_, err := s.Ask(t.Context(), workload.Query{Start: 1, End: 2, M: "sum:x"})
	if err == nil ||
		!strings.Contains(err.Error(), "A: /api/query?start=1&end=2&m=sum%3Ax: status 503: <html> <p>later</p>") {
		t.Errorf("error %v, want the server, the path, the status and the page on one line", err)
	}
	gone := &Server{Peer: report.Peer{Name: "gone"}, URL: "http://127.0.0.1:1"}
	if err := gone.Drain(t.Context(), workload.Query{}); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("nobody listens: error %v, want one line", err)
	}
}

func TestPrometheusPath(t *testing.T) {
	path, err := prometheusPath(workload.Query{
		Start: 1699999500,
		End:   1700002799,
		M:     "max:5m-avg:cpu.user{host=a|b,dc=*}",
	})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	v := u.Query()
	got, want := v.Get("query"), `max(avg_over_time({__name__="cpu.user",host=~"a|b"}[300s])) by (host,dc)`
	if got != want {
		t.Errorf("query %s, want %s", got, want)
	}
	if v.Get("start") != "1699999799" || v.Get("end") != "1700002799" || v.Get("step") != "300s" {
		t.Errorf("times %v, want 1699999799 to 1700002799 in steps of 300s", v)
	}
	if _, err := prometheusPath(workload.Query{M: "sum:rate:x"}); err == nil {
		t.Error("sum:rate:x, which Prometheus cannot be asked: no error, want one")
	}
}
