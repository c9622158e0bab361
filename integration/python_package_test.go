//go:build integration

package integration

import (
	"archive/zip"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"downpour/integration/e2e"
	"downpour/pushdown/process/version"
)

// pythons are the environments in which the package for Python must work: see the steps of
// integration/setup with these names.
var pythons = []string{"venv", "python-oldest", "python-newest"}

// wheel returns the path of the package for Python that make packages has made.
func wheel(ctx context.Context, t *testing.T) string {
	t.Helper()
	found := must[[]string](t)(filepath.Glob(filepath.Join(packages(ctx, t), "*.whl")))
	if len(found) != 1 {
		t.Fatalf("wheels %q, want one", found)
	}
	return found[0]
}

// The wheel holds what is said of it: the release's version, the licence, and the mark of types.
// Its sources make the same wheel.
func TestPython_wheel(t *testing.T) {
	t.Parallel()
	ctx := within(t, 15*time.Minute)
	path := wheel(ctx, t)
	file := must[*zip.ReadCloser](t)(zip.OpenReader(path))
	defer file.Close()
	read := func(name string) string {
		f := must[fs.File](t)(file.Open(name))
		defer f.Close()
		return string(must[[]byte](t)(io.ReadAll(f)))
	}
	root := must[string](t)(e2e.Root())
	info := "downpour_client-" + version.Version + ".dist-info/"
	for _, line := range []string{
		"Name: downpour-client", "Version: " + version.Version, "Requires-Python: >=3.9",
		"License-Expression: Apache-2.0", "Classifier: Typing :: Typed",
	} {
		if !strings.Contains(read(info+"METADATA"), "\n"+line+"\n") {
			t.Errorf("no %q in\n%s", line, read(info+"METADATA"))
		}
	}
	licence := must[[]byte](t)(os.ReadFile(filepath.Join(root, "LICENSE")))
	if read(info+"licenses/LICENSE") != string(licence) {
		t.Error("the licence is not that of the release: copy LICENSE to integration/python")
	}
	if !slices.ContainsFunc(file.File, func(f *zip.File) bool { return f.Name == "downpour/py.typed" }) {
		t.Error("the wheel has no mark that it is typed")
	}

	sources := strings.TrimSuffix(path, "-py3-none-any.whl") + ".tar.gz"
	dir := t.TempDir()
	built := must[[]byte](t)(e2e.PythonIn(ctx, "venv",
		[]string{"SOURCE_DATE_EPOCH=" + strconv.FormatInt(file.File[0].Modified.Unix(), 10)}, "-m", "pip", "wheel",
		"--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", dir, sources))
	again := must[[]byte](t)(os.ReadFile(filepath.Join(dir, filepath.Base(path))))
	if string(again) != string(must[[]byte](t)(os.ReadFile(path))) {
		t.Errorf("the sources make another wheel\n%s", built)
	}
}

// The wheel passes the package's own tests, which use scripted servers, with the oldest and the
// newest Python and libraries.
func TestPython_package(t *testing.T) {
	t.Parallel()
	ctx := within(t, 15*time.Minute)
	if err := e2e.SetUp(ctx, "python_oldest", "python_newest"); err != nil {
		t.Fatal(err)
	}
	path, root := wheel(ctx, t), must[string](t)(e2e.Root())
	for _, environment := range pythons {
		dir := t.TempDir()
		must[[]byte](t)(e2e.PythonIn(ctx, environment, nil, "-m", "pip", "install", "--quiet", "--no-index",
			"--no-deps", "--target", dir, path))
		env := []string{"PYTHONPATH=" + dir, "PYTHONDONTWRITEBYTECODE=1"}
		from := must[[]byte](t)(e2e.PythonIn(ctx, environment, env,
			"-c", "import sys, downpour; print(sys.version, downpour.__file__)"))
		if !strings.Contains(string(from), dir) {
			t.Errorf("%s tests %s, want what the wheel holds", environment, from)
		}
		t.Logf("%s", from)
		if _, err := e2e.PythonIn(ctx, environment, env,
			filepath.Join(root, "integration/python/tests/run.py")); err != nil {
			t.Errorf("%s: %v", environment, err)
		}
	}
}

// mypy, which is strict, finds no fault in the package, with the oldest Python and libraries and
// with the newest, and gives each call the type that it has.
func TestPython_types(t *testing.T) {
	t.Parallel()
	ctx := within(t, 15*time.Minute)
	if err := e2e.SetUp(ctx, "python_oldest", "python_newest"); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(must[string](t)(e2e.Root()), "integration/python")
	for environment, more := range map[string][]string{
		"python-oldest": {"--ignore-missing-imports"},
		"python-newest": {"--python-version", "3.14"},
	} {
		// Options first: mypy takes no more files behind one that follows a file.
		args := append([]string{"-m", "mypy", "--strict", "--config-file", "", "--cache-dir", t.TempDir()}, more...)
		args = append(args, filepath.Join(dir, "downpour"), filepath.Join(dir, "tests/typed.py"))
		if environment == "python-newest" { // the examples' libraries are there
			args = append(args, filepath.Join(dir, "examples"))
		}
		if _, err := e2e.PythonIn(ctx, environment, []string{"MYPYPATH=" + dir}, args...); err != nil {
			t.Errorf("%s: %v", environment, err)
		}
	}
}

// The examples with polars and DuckDB print what the points say.
func TestPython_examples(t *testing.T) {
	t.Parallel()
	ctx := within(t, 5*time.Minute)
	ours := embedded(t, nil)
	var points []e2e.Point
	for minute := range 120 {
		for host, value := range map[string]int{"a": 10, "b": 20 - 20*(minute/60)} { // b is the busier one for an hour
			points = append(points, e2e.Point{
				Metric:    "cpu.user",
				Timestamp: dataStart + int64(minute*60),
				Value:     json.RawMessage(strconv.Itoa(value)),
				Tags:      map[string]string{"host": host},
			})
		}
	}
	if err := e2e.Put(ctx, ours.URL, points); err != nil {
		t.Fatal(err)
	}

	asked := []string{ours.URL, "sum:1m-avg:cpu.user{host=*}", strconv.Itoa(dataStart), strconv.Itoa(dataStart + 7199)}
	f := func(script, want string, args ...string) {
		t.Helper()
		got := must[[]byte](t)(e2e.Python(ctx, "integration/python/examples/"+script, append(asked, args...)...))
		if string(got) != want {
			t.Errorf("%s prints\n%swant\n%s", script, got, want)
		}
	}
	f("with_polars.py", "hour,host,mean\n2013-01-01T00:00:00.000+0000,b,20.0\n2013-01-01T01:00:00.000+0000,a,10.0\n")
	f("with_duckdb.py", "ann,120,10.0\nbob,120,10.0\n", writeFile(t, "owners.csv", "host,owner\na,ann\nb,bob\nc,cy\n"))
}
