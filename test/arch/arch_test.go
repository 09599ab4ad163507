// Package arch checks the rules of the code base as tests. Each rule has its reason and the fix.
package arch

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "contiv.dev/vswitch"

type pkg struct {
	ImportPath string
	Name       string
	Dir        string
	Imports    []string
	GoFiles    []string
}

// packages returns the module's packages, which are listed once for all tests.
func packages(t *testing.T) []pkg {
	t.Helper()
	all, err := listPackages()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// listPackages lists the module's packages with `go list`.
var listPackages = sync.OnceValues(func() ([]pkg, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Dir,Imports,GoFiles", module+"/...")
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		p.ImportPath = strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		all = append(all, p)
	}
})

// importRule: only packages below one of allowed may import packages below target.
type importRule struct {
	target  string // import path prefix
	allowed []string
	why     string
}

var importRules = []importRule{
	{"go.fd.io/govpp", []string{"dataplane/vpp", "test/bench"}, // the benchmark measures the minimum cost
		"only dataplane/vpp may use VPP's binary API; express the configuration as a northbound value (dataplane/nb)"},
	{"k8s.io/client-go", []string{"internal/kube"},
		"only internal/kube may watch the API server; handle the event KubeStateChange instead"},
	{module + "/dataplane/vpp", []string{"dataplane/vpp", "cmd", "test", "plugins/ipnet"},
		"plugins must not depend on a dataplane; emit northbound values (exception: plugins/ipnet uses the channel type of its documented GoVPP interface)"},
	{module + "/dataplane/scheduler", []string{"dataplane", "cmd", "test"},
		"plugins must not depend on the scheduler; use the interface dataplane/txn, which other dataplanes can implement, too"},
	{module + "/dataplane/links", []string{"dataplane", "cmd", "test"},
		"plugins must not program Linux; emit northbound values, which the scheduler applies"},
	{module + "/dataplane/netlink", []string{"dataplane", "cmd", "test"},
		"only dataplanes may use netlink; emit northbound values instead"},
	{module + "/dataplane/linux", []string{"dataplane", "cmd", "test"},
		"plugins must not depend on a driver; emit the messages of dataplane/proto"},
	{module + "/test", []string{"test"}, "only tests may import packages below test/; move the code that the product needs to another folder"},
	{module + "/dataplane/driver", []string{"dataplane"}, "only drivers may use the two-phase loop; emit northbound values instead"},
	{module + "/cmd", []string{"cmd"}, "a command must not be imported; move the shared code to internal/"},
	{"google.golang.org/grpc", []string{"internal/clusterdb"},
		"only the etcd client may use gRPC; use internal/cniapi for the CNI protocol (docs/adr/0004)"},
}

// below reports whether path is prefix or inside it.
func below(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

func TestImports(t *testing.T) {
	for _, p := range packages(t) {
		for _, imp := range p.Imports {
			for _, r := range importRules {
				if below(imp, r.target) && !belowAny(p.ImportPath, r.allowed) {
					t.Errorf("%s imports %s: %s", p.ImportPath, imp, r.why)
				}
			}
		}
	}
}

// layers are the top folders, each with the lower layers that its packages may import. The contracts of events belong to the lowest layer,
// although their folder is below the controller.
var (
	contracts = "plugins/controller/api"
	layers    = map[string][]string{"internal": nil, "dataplane": {"internal"}, "plugins": {"internal", "dataplane"}}
)

// TestLayers checks that no package imports a package of a higher layer.
func TestLayers(t *testing.T) {
	for _, p := range packages(t) {
		layer, _, _ := strings.Cut(p.ImportPath, "/")
		lower, ok := layers[layer]
		for _, imp := range p.Imports {
			target, ours := strings.CutPrefix(imp, module+"/")
			if !ok || !ours || target == contracts && p.ImportPath != contracts {
				continue
			}
			if p.ImportPath == contracts {
				t.Errorf("%s imports %s: the contracts of events must not import packages of this module", p.ImportPath, target)
			}
			if !below(target, layer) && !belowAny(target, lower) {
				t.Errorf("%s imports %s, which is in a higher layer: declare an interface here, or move the shared code to a lower layer", p.ImportPath, target)
			}
		}
	}
}

func belowAny(path string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if below(path, prefix) {
			return true
		}
	}
	return false
}

// TestCNIBinaryIsThin limits the imports of the CNI binary, because it is executed for every pod.
func TestCNIBinaryIsThin(t *testing.T) {
	for _, p := range packages(t) {
		if p.ImportPath != "cmd/contiv-cni" {
			continue
		}
		for _, imp := range p.Imports {
			if below(imp, module) && imp != module+"/internal/cniapi" {
				t.Errorf("cmd/contiv-cni imports %s: it may only use internal/cniapi and the CNI libraries, because it is started for every pod", imp)
			}
		}
	}
}

// TestControllerImportsNoPlugin checks that the event loop does not depend on the plugins to which it dispatches events.
func TestControllerImportsNoPlugin(t *testing.T) {
	for _, p := range packages(t) {
		if !below(p.ImportPath, "plugins/controller") {
			continue
		}
		for _, imp := range p.Imports {
			if below(imp, module+"/plugins") && !below(imp, module+"/plugins/controller") {
				t.Errorf("%s imports %s: the controller must not depend on a plugin; declare an interface in plugins/controller/api", p.ImportPath, imp)
			}
		}
	}
}

// parts are packages below a folder, each with the packages of the same folder that it may import.
type parts struct {
	folder  string
	below   map[string][]string
	instead string
}

// TestParts checks that each part can be read and changed in one folder: it imports other parts of the same folder only as listed.
func TestParts(t *testing.T) {
	vpp := parts{"dataplane/vpp/", map[string][]string{"kit": nil, "iface": {"kit"}, "traffic": {"kit"}},
		"declare an interface for the functions that it needs, and pass the implementation in dataplane/vpp/register.go"}
	for _, feature := range []string{"l2", "l3", "acl", "nat44", "contiv"} {
		vpp.below[feature] = []string{"kit", "iface"}
	}
	nft := parts{"dataplane/linux/nft/", map[string][]string{"wire": nil, "policy": {"wire"}, "services": {"wire"}},
		"move the code for nf_tables that both need to wire"}
	all := packages(t)
	for _, part := range []parts{vpp, nft} {
		for _, p := range all {
			name, ok := strings.CutPrefix(p.ImportPath, part.folder)
			if _, is := part.below[name]; ok && is {
				part.check(t, name, p)
			}
		}
	}
}

func (part parts) check(t *testing.T, name string, p pkg) {
	t.Helper()
	for _, imp := range p.Imports {
		other, ok := strings.CutPrefix(imp, module+"/"+part.folder)
		if _, is := part.below[other]; ok && is && !slices.Contains(part.below[name], other) {
			t.Errorf("%s imports %s: %s", p.ImportPath, imp, part.instead)
		}
	}
}

// TestPackageDoc checks that the package comment is in doc.go, where a new developer reads it first. The comment of a command is beside its main
// function.
func TestPackageDoc(t *testing.T) {
	for _, p := range packages(t) {
		file := "doc.go"
		switch {
		case len(p.GoFiles) == 0 || generated(t, p):
			continue
		case p.Name == "main" && !slices.Contains(p.GoFiles, file):
			file = "main.go"
		}
		if !slices.Contains(p.GoFiles, file) || !hasPackageDoc(t, p, file) {
			t.Errorf("%s has no package comment in %s: add one with the purpose of the package and its relation to other packages", p.ImportPath, file)
		}
		for _, other := range p.GoFiles {
			if other != file && hasPackageDoc(t, p, other) {
				t.Errorf("%s/%s also has a package comment: move it to %s", p.ImportPath, other, file)
			}
		}
	}
}

// generated reports whether the whole package is generated.
func generated(t *testing.T, p pkg) bool {
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if !ast.IsGenerated(f) {
			return false
		}
	}
	return true
}

func hasPackageDoc(t *testing.T, p pkg, file string) bool {
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.PackageClauseOnly|parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return f.Doc != nil
}

// TestFunctionLength limits functions to 80 lines, so that a function can be read at once. 80 lines is the limit, not the goal.
func TestFunctionLength(t *testing.T) {
	eachSource(t, func(path string, f *ast.File, fset *token.FileSet) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; n > 80 {
				t.Errorf("%s: %s has %d lines; split it (limit 80)", path, fn.Name.Name, n)
			}
		}
	})
}

// source is a parsed file.
type source struct {
	path string
	file *ast.File
	fset *token.FileSet
}

// eachSource visits the Go files below the root of the module, also those that git does not track yet. Tests and protobuf code are left out; rules
// leave out other generated code themselves. The files are parsed once for all tests.
func eachSource(t *testing.T, visit func(path string, f *ast.File, fset *token.FileSet)) {
	t.Helper()
	all, err := parseSources()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		visit(s.path, s.file, s.fset)
	}
}

var parseSources = sync.OnceValues(func() (all []source, err error) {
	root := filepath.Join("..", "..")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		all = append(all, source{filepath.ToSlash(rel), f, fset})
		return nil
	})
	return all, err
})

// TestMakefileTargetsAreDocumented checks that every target has a text in `make help`.
func TestMakefileTargetsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	target := regexp.MustCompile(`^([a-z0-9-]+):([^=]|$)`) // the same names as the target help
	for line := range strings.Lines(string(text)) {
		if m := target.FindStringSubmatch(line); m != nil && !strings.Contains(line, "## ") {
			t.Errorf("Makefile target %s has no ## description", m[1])
		}
	}
}
