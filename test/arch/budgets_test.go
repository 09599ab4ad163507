package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// The budgets. A value above a budget needs a waiver with a reason; a waiver that is not needed any more is an error, so that
// the list only shrinks.
const (
	maxFileLines = 400
	maxMethods   = 8  // methods of an interface
	maxFields    = 15 // fields of a struct
	maxImports   = 6  // imported packages of this module
)

const (
	documented = "its shape is that of a documented API"
	record     = "a record: it is read field by field, and has no behaviour of its own"
	loopState  = "all that one goroutine owns; its methods are split over the files of the package"
	options    = "a list of options, one field each"
	fake       = "a stand-in for what another program has"
)

// wideInterfaces are interfaces with more than maxMethods methods.
var wideInterfaces = map[string]string{
	"dataplane/linux/rules.RuleRenderer": documented,
	"dataplane/linux/table.Backend":      "two backends stand behind it, and each of its users needs most of it",
}

// wideStructs are structs with more than maxFields fields.
var wideStructs = map[string]string{
	"cmd/contiv-agent.options":                 options,
	"cmd/contiv-agent.vppPlane":                "what the agent has of VPP, made and stopped in one order",
	"cmd/contiv-agent.agent":                   "what the agent is made of, made and stopped in one order",
	"cmd/contiv-init/internal/preflight.Facts": record,
	"cmd/contiv-netctl.dropRow":                record,
	"dataplane/driver.Driver":                  loopState,
	"dataplane/driver.loop":                    loopState,
	"dataplane/linux.Config":                   documented,
	"dataplane/linux.InternalDataplane":        loopState,
	"dataplane/linux.endpointManager":          loopState,
	"dataplane/linux/nft/policy.node":          "a node of the graph of chains: desired, written and links",
	"dataplane/linux/nft/services.balancer":    record,
	"dataplane/linux/routetable.entry":         record,
	"dataplane/linux/routetable.Table":         loopState,
	"dataplane/linux/rules.Config":             documented,
	"dataplane/linux/rules/rulestest.Packet":   record,
	"dataplane/linux/table.Match":              "one field for each condition that a rule may have",
	"dataplane/links.Backend":                  loopState,
	"dataplane/scheduler.graph":                loopState,
	"dataplane/scheduler.Descriptor":           "what a descriptor may define; most are optional",
	"dataplane/scheduler.planner":              loopState,
	"dataplane/scheduler.Scheduler":            loopState,
	"dataplane/vpp/conn.lane":                  loopState,
	"dataplane/vpp/iface.ifState":              record,
	"dataplane/vpp/vppfake.nat":                fake,
	"dataplane/vpp/vppfake.natSession":         fake,
	"dataplane/vpp/vppfake.Packet":             fake,
	"dataplane/vpp/vppfake.state":              fake,
	"dataplane/windows.WindowsDataplane":       loopState,
	"dataplane/windows.endpointManager":        loopState,
	"plugins/ipnet.Deps":                       documented,
	"plugins/ipnet.state":                      loopState,
	"plugins/ipnet.settings":                   options,
	"plugins/nodesync.state":                   loopState,
	"test/soak.soak":                           "the two nodes, and all that is done to them",
}

const (
	root     = "a composition root: it names all that the binary is made of"
	list     = "the list of its parts, and nothing more"
	messages = "most of them are generated messages, one package for each model"
	seams    = "documented Deps: each dependency of the plugin is a field of the package that owns it"
)

// manyImports are packages that import more than maxImports packages of this module.
var manyImports = map[string]string{
	"cmd/contiv-agent":     root,
	"cmd/contiv-init":      root,
	"cmd/contiv-ksr":       root,
	"cmd/contiv-netctl":    root,
	"dataplane/linux":      root,
	"dataplane/links":      messages,
	"dataplane/nb":         list,
	"dataplane/vpp":        list,
	"dataplane/vpp/contiv": messages,
	"dataplane/windows":    "both versions of the service that Windows has",
	"plugins/ipnet":        "the one place that puts each model of a pod's and a node's wiring",
	"plugins/nodesync":     seams,
	"plugins/policy":       seams,
	"plugins/service":      seams,
	"test/bench":           "measures each part of the product beside its floor",
	"test/soak":            root,
}

// TestImportBudget limits imports, because a package that imports few others can be understood and moved alone.
func TestImportBudget(t *testing.T) {
	within := maps.Clone(manyImports)
	for _, p := range packages(t) {
		n := 0
		for _, imp := range p.Imports {
			if below(imp, module) {
				n++
			}
		}
		if n <= maxImports {
			continue
		}
		if manyImports[p.ImportPath] == "" {
			t.Errorf("%s imports %d packages of this module; split it, or add a waiver with its reason (limit %d)", p.ImportPath, n, maxImports)
		}
		delete(within, p.ImportPath)
	}
	for name := range within {
		t.Errorf("%s is within the budget of imports: remove its waiver", name)
	}
}

// TestFileLength limits the length of files, so that a file has one subject and can be read in one go.
func TestFileLength(t *testing.T) {
	eachSource(t, func(path string, _ *ast.File, _ *token.FileSet) {
		if allowedIn(path, map[string]string{"dataplane/vpp/binapi/": "generated"}) {
			return
		}
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte("\n")); n > maxFileLines {
			t.Errorf("%s has %d lines; split it by subject (limit %d)", path, n, maxFileLines)
		}
	})
}

// TestWidth limits the width of types: an interface has only the methods that its consumer needs, and a struct only fields that
// are used together.
func TestWidth(t *testing.T) {
	waived := map[string]bool{}
	over := func(name string, what string, n, limit int, waivers map[string]string) {
		if n <= limit {
			return
		}
		if waivers[name] == "" {
			t.Errorf("%s has %d %s; split it, or add a waiver with its reason (limit %d)", name, n, what, limit)
		}
		waived[what+name] = true
	}
	eachSource(t, func(path string, f *ast.File, _ *token.FileSet) {
		if allowedIn(path, map[string]string{"dataplane/vpp/binapi/": "generated"}) {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			name := fmt.Sprintf("%s.%s", filepath.ToSlash(filepath.Dir(path)), spec.Name.Name)
			switch typ := spec.Type.(type) {
			case *ast.InterfaceType:
				over(name, "methods", count(typ.Methods), maxMethods, wideInterfaces)
			case *ast.StructType:
				over(name, "fields", count(typ.Fields), maxFields, wideStructs)
			}
			return true
		})
	})
	for name := range wideInterfaces {
		if !waived["methods"+name] {
			t.Errorf("%s is within the budget of methods: remove its waiver", name)
		}
	}
	for name := range wideStructs {
		if !waived["fields"+name] {
			t.Errorf("%s is within the budget of fields: remove its waiver", name)
		}
	}
}

// count returns the number of fields or methods; an embedded type counts as one.
func count(list *ast.FieldList) (n int) {
	for _, f := range list.List {
		n += max(1, len(f.Names))
	}
	return n
}
