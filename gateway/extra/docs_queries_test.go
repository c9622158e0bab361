package extra_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Every example of the page of queries is answered by a gateway that has the metrics which it names.
func TestQueriesPage(t *testing.T) {
	page, err := os.ReadFile("../docs/queries.md")
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, nil)
	for _, series := range []string{
		"proc.loadavg.1min host=a", "proc.loadavg.5min host=a", "proc.stat.cpu host=a type=user",
		"proc.stat.cpu host=a type=system",
	} {
		metric, tags, _ := strings.Cut(series, " ")
		for minutes := range 5 {
			b.Put(fmt.Sprintf("%s %d %d %s", metric, time.Now().Unix()-int64(60*minutes+60), minutes, tags))
		}
	}

	curl := regexp.MustCompile(`(?m)^    curl (?:-g )?(?:-d '([^']*)' )?'?http://127\.0\.0\.1:4242(/[^'\s]*)'?$`)
	examples := curl.FindAllStringSubmatch(string(page), -1)
	for _, e := range examples {
		method := http.MethodGet
		if e[1] != "" {
			method = http.MethodPost
		}
		a := b.Do(method, strings.NewReplacer("{", "%7B", "}", "%7D", "|", "%7C").Replace(e[2]),
			strings.NewReader(e[1]))
		if a.Status != http.StatusOK || len(a.Body) < 5 {
			t.Errorf("%s: %d %.200s", e[0], a.Status, a.Body)
		}
	}
	if want := strings.Count(string(page), "    curl "); len(examples) != want {
		t.Errorf("%d examples were tried of %d", len(examples), want)
	}
}
