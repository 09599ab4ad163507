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

// The budgets. A value above a budget needs a waiver with a reason. A waiver that is no longer needed is an error, so the
// lists have no waivers without effect.
const (
	maxFileLines = 400
	maxMethods   = 8  // methods of an interface
	maxFields    = 15 // fields of a struct
	maxImports   = 6  // imported packages of this module
)

const (
	documented = "it has the fields or methods of a documented API"
	record     = "a record without behaviour, which is read field by field"
	loopState  = "the state of one goroutine; its methods are in several files of the package"
	options    = "a list of options, one field for each"
	fake       = "a test double for the state of another program"
)

// wideInterfaces are interfaces with more than maxMethods methods.
var wideInterfaces = map[string]string{
	"dataplane/linux/rules.RuleRenderer": documented,
	"dataplane/linux/table.Backend":      "two backends implement it, and each of its users needs most of its methods",
}

// wideStructs are structs with more than maxFields fields.
var wideStructs = map[string]string{
	"cmd/contiv-agent.options":                 options,
	"cmd/contiv-agent.vppPlane":                "the parts of the agent for VPP, which are created and stopped in a fixed order",
	"cmd/contiv-agent.agent":                   "the parts of the agent, which are created and stopped in a fixed order",
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
	"dataplane/scheduler.Descriptor":           "the functions that a descriptor may define; most are optional",
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
	"test/soak.soak":                           "the two nodes, and the disturbances that the test causes",
}

const (
	root     = "a composition root: it constructs all parts of the binary"
	list     = "it only lists its parts"
	messages = "most of them are packages of generated messages, one for each model"
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
	"dataplane/windows":    "it supports both versions of the service of Windows",
	"plugins/ipnet":        "it emits the values of all models that connect pods and nodes",
	"plugins/nodesync":     seams,
	"plugins/policy":       seams,
	"plugins/service":      seams,
	"test/bench":           "it compares each part of the product with its lower bound",
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
