package web

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// The statements of modules, as ours have them: each begins a line.
var (
	imported  = regexp.MustCompile(`^import (?:(\w+)|\* as (\w+)|(\{[^}]*\})) from '([^']+)';`)
	exported  = regexp.MustCompile(`^export (?:(?:const|class|function|async function) (\w+)|const \{ ([\w, ]+) \} = )`)
	byDefault = regexp.MustCompile(`^export \{ (\w+) as default \};`)
	called    = regexp.MustCompile(`\bimport\('([^']+)'\)`)
)

// link makes one module of the one at an address and all that it imports, by statements or by calls. Each is a function
// that is run once, when the first other one imports it. A browser takes 2 ms of processor time for a file that it asks
// for, and over a network a round trip for each six.
func link(files Files, at string) ([]byte, error) {
	l := linker{files: files, numbers: map[string]int{}, done: map[string]bool{}}
	l.out.WriteString("const once = (make) => { let made; return () => (made ??= make()); };\n")
	for l.todo = []string{at}; len(l.todo) > 0; {
		next := l.todo[0]
		l.todo = l.todo[1:]
		if err := l.add(next); err != nil {
			return nil, fmt.Errorf("link %s: %w", at, err)
		}
	}
	fmt.Fprintf(&l.out, "%s();\n", l.name(at))
	return l.out.Bytes(), nil
}

type linker struct {
	files   Files
	out     bytes.Buffer
	numbers map[string]int  // of modules, by address
	done    map[string]bool // whether one is written; false while those that it imports are
	todo    []string        // what calls import
}

// name is what a module is called in the one that is made.
func (l *linker) name(at string) string {
	if l.numbers[at] == 0 {
		l.numbers[at] = len(l.numbers) + 1
	}
	return fmt.Sprintf("module%d", l.numbers[at])
}

// add writes a module, after those that it imports by statements.
func (l *linker) add(at string) error {
	if done, begun := l.done[at]; done {
		return nil
	} else if begun {
		return fmt.Errorf("%s imports itself, by others", at)
	}
	l.done[at] = false
	file, ok := l.files[at]
	if !ok {
		return fmt.Errorf("there is no %s", at)
	}
	m := module{linker: l, dir: path.Dir(at)}
	for rest := file.content; len(rest) > 0; {
		var err error
		if rest, err = m.next(rest); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	fmt.Fprintf(&l.out, "// %s\nconst %s = once((() => {\n%sreturn { %s };\n}));\n", at, l.name(at), &m.body,
		strings.Join(m.names, ", "))
	l.done[at] = true
	return nil
}

// module is one that is being rewritten.
type module struct {
	*linker
	dir   string // of its address
	body  bytes.Buffer
	names []string // that it exports
}

// next rewrites what is first in a text: a comment, a statement, or a line of anything else. It returns what follows.
func (m *module) next(text []byte) ([]byte, error) {
	switch {
	case bytes.HasPrefix(text, []byte("/*")):
		comment, rest, _ := bytes.Cut(text, []byte("*/"))
		m.body.Write(comment)
		m.body.WriteString("*/")
		return rest, nil
	case bytes.HasPrefix(text, []byte("import ")), bytes.HasPrefix(text, []byte("export ")):
		return m.statement(text)
	}
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	if bytes.Contains(line, []byte("import(")) {
		line = called.ReplaceAllFunc(line, m.call)
	}
	m.body.Write(line)
	m.body.WriteByte('\n')
	return rest, nil
}

// statement rewrites an import, or what is exported.
func (m *module) statement(text []byte) ([]byte, error) {
	if found := imported.FindSubmatch(text); found != nil {
		return text[len(found[0]):], m.imports(found)
	}
	if found := byDefault.FindSubmatch(text); found != nil {
		m.names = append(m.names, "default: "+string(found[1]))
		return text[len(found[0]):], nil
	}
	if found := exported.FindSubmatch(text); found != nil {
		m.names = append(m.names, string(found[1])+string(found[2]))
		return text[len("export "):], nil
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return nil, fmt.Errorf("%q is no statement that can be linked", line)
}

// call rewrites an import by a call.
func (m *module) call(text []byte) []byte {
	at := path.Join(m.dir, string(called.FindSubmatch(text)[1]))
	m.todo = append(m.todo, at)
	return []byte("Promise.resolve().then(" + m.name(at) + ")")
}

// imports rewrites an import: found are a default, a name for all, or names in braces, and the address.
func (m *module) imports(found [][]byte) error {
	at := path.Join(m.dir, string(found[4]))
	if err := m.add(at); err != nil {
		return err
	}
	names, of := string(found[2])+strings.ReplaceAll(string(found[3]), " as ", ": "), ""
	if len(found[1]) > 0 {
		names, of = string(found[1]), ".default"
	}
	fmt.Fprintf(&m.body, "const %s = %s()%s;", names, m.name(at), of)
	return nil
}
