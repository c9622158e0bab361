package integration

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// exclusive are the tests on real servers that have the machine for themselves, with the reasons. All others
// run side by side: they wait for servers most of their time.
var exclusive = map[string]string{
	"TestArrow_rates":      "prints rates, which others would slow down",
	"TestArrow_tenMillion": "prints rates, and takes the memory of ten million points in five readers",
	"TestChaos": "its servers count as dead after seconds of silence, " +
		"also when others take the processors",
	"TestHDFS_acknowledgedPointsSurvive": "its servers count as dead after seconds of silence, " +
		"also when others take the processors",
	"TestHostile": "its requests fill the memory and the processors until the gateway refuses some",
	"TestKerberos_tickets": "its tickets end within a minute, and are renewed in time only where the " +
		"machine does not stall",
	"TestLife": "its jobs take turns by the clock, " +
		"beside a cluster whose regions move all the time",
	"TestLife_merges": "its jobs take turns by the clock, " +
		"beside a cluster whose regions merge all the time",
	"TestUID_eightGatewaysOnHBase": "eight gateways are to assign names at the same moment, " +
		"which they do not while they wait for a processor",
	"TestUpgrade_hbase": "its servers are replaced by the clock, under load",
}

// sideBySide reports tests on real servers that do not begin with t.Parallel() and are not in the table, and
// entries of the table that are no longer true.
func sideBySide(h *house) (found []string) {
	parallel := map[string]bool{}
	for _, f := range h.files {
		if !f.test || f.room.dir != "integration" || !strings.HasPrefix(string(f.text), "//go:build integration\n") {
			continue
		}
		for _, decl := range f.ast.Decls {
			d, ok := decl.(*ast.FuncDecl)
			if !ok || d.Recv != nil || !strings.HasPrefix(d.Name.Name, "Test") || d.Name.Name == "TestMain" {
				continue
			}
			name := d.Name.Name
			parallel[name] = beginsParallel(d)
			if !parallel[name] && exclusive[name] == "" {
				found = append(found, fmt.Sprintf("%s: %s does not begin with t.Parallel(), "+
					"and the table of exclusive tests gives no reason", h.line(d), name))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(exclusive)) {
		if is, ok := parallel[name]; is || !ok && h.texts["integration/house_parallel_test.go"] != nil {
			found = append(found, fmt.Sprintf("integration/house_parallel_test.go: %s is no exclusive test", name))
		}
	}
	return found
}

func beginsParallel(d *ast.FuncDecl) bool {
	if len(d.Body.List) == 0 {
		return false
	}
	s, ok := d.Body.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := s.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := f.X.(*ast.Ident)
	return ok && x.Name == "t" && f.Sel.Name == "Parallel"
}
