package integration

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"unicode"
)

// forgone is a word that names of this repository once had, and what GLOSSARY.md
// says instead. It is a whole name (with an upper-case letter in it, "PartInfo") or
// a word of names ("ledger", which is in ledgerOf and newLedgers).
type forgone struct {
	word    string
	instead string
	only    []string // the folders in which it is forgone, if it means something else elsewhere
	except  []string // the folders in which it means something else
}

// A word enters the table once no name has it any more.
var forgoneTable = []forgone{
	{word: "ledger", instead: "coverage"},
	{word: "witness", instead: "presence marker"},
	{word: "remark", instead: "annotation, or meta line"},
	{word: "standing", instead: "incremental"},
	{word: "mortal", instead: "expiring"},
	{word: "era", instead: "epoch", only: []string{"encoding", "pushdown", "gateway"}},
	{
		word:    "keeper",
		instead: "locator",
		only:    []string{"pushdown"},
		except:  []string{"pushdown/lease", "pushdown/compaction", "pushdown/cmd"},
	},
	{word: "door", instead: "listener", only: []string{"gateway"}},
	{word: "ExplainWith", instead: "what it decides"},
	{word: "WouldShare", instead: "what it asks"},
	{word: "PartInfo", instead: "Part"},
}

// forgoneNames reports forgone words in names that are declared and in names of files and folders.
// Tests may use them, to describe the past.
func forgoneNames(h *house) (found []string) {
	for _, f := range h.files {
		if f.test || f.generated {
			continue
		}
		for _, id := range declared(f.ast) {
			found = append(found, h.forgone(f, id.Name, h.line(id))...)
		}
		base := strings.TrimSuffix(path.Base(f.path), ".go")
		found = append(found, h.forgone(f, base, f.path)...)
		found = append(found, h.forgone(f, path.Base(f.room.dir), f.room.dir)...)
	}
	return found
}

// forgone compares one name with the table.
func (h *house) forgone(f *goFile, name, at string) (found []string) {
	words := wordsOf(name)
	for _, gone := range forgoneTable {
		whole := strings.ToLower(gone.word) != gone.word
		has := whole && name == gone.word ||
			!whole && (slices.Contains(words, gone.word) || slices.Contains(words, gone.word+"s"))
		applies := (gone.only == nil || underAny(f.room.dir, gone.only)) && !underAny(f.room.dir, gone.except)
		if has && applies {
			found = append(found, fmt.Sprintf("%s: %s has the word %s; say %s", at, name, gone.word, gone.instead))
		}
	}
	return found
}

// wordsOf cuts a name into its words, in lower case: newUIDLedger is new, uid
// and ledger. ZooKeeper is one word.
func wordsOf(name string) (words []string) {
	runes := []rune(strings.ReplaceAll(name, "ZooKeeper", "Zookeeper"))
	start := 0
	for i := range runes {
		// A word begins at an upper-case letter behind a lower-case one, and at the
		// last upper-case letter of an acronym that a word follows.
		begins := i > 0 && unicode.IsUpper(runes[i]) &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if begins || runes[i] == '_' {
			words = append(words, strings.ToLower(string(runes[start:i])))
			start = i
		}
		if runes[i] == '_' {
			start++
		}
	}
	return append(words, strings.ToLower(string(runes[start:])))
}

// declared returns the names that a file declares: what it only uses may be of
// another package.
func declared(f *ast.File) (names []*ast.Ident) {
	fields := func(list *ast.FieldList) {
		if list == nil {
			return
		}
		for _, field := range list.List {
			names = append(names, field.Names...)
		}
	}
	expressions := func(list ...ast.Expr) {
		for _, e := range list {
			if id, ok := e.(*ast.Ident); ok {
				names = append(names, id)
			}
		}
	}

	ast.Inspect(f, func(n ast.Node) bool {
		switch d := n.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name)
			fields(d.Recv)
		case *ast.FuncType:
			fields(d.TypeParams)
			fields(d.Params)
			fields(d.Results)
		case *ast.TypeSpec:
			names = append(names, d.Name)
		case *ast.ValueSpec:
			names = append(names, d.Names...)
		case *ast.StructType:
			fields(d.Fields)
		case *ast.InterfaceType:
			fields(d.Methods)
		case *ast.AssignStmt:
			if d.Tok == token.DEFINE {
				expressions(d.Lhs...)
			}
		case *ast.RangeStmt:
			if d.Tok == token.DEFINE {
				expressions(d.Key, d.Value)
			}
		case *ast.LabeledStmt:
			names = append(names, d.Label)
		case *ast.ImportSpec:
			if d.Name != nil {
				names = append(names, d.Name)
			}
		}
		return true
	})
	return names
}
