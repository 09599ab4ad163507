package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	gopackages "golang.org/x/tools/go/packages"
)

// TestWindowsTypeChecks checks that everything that is built for Windows passes the type checker for Windows, tests included. It compiles
// nothing, and reads other modules without the bodies of their functions: this takes some seconds, while compiling takes minutes on a new
// machine. TestWindowsImage in `make test-all` builds the programs themselves.
func TestWindowsTypeChecks(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			roots, err := gopackages.Load(&gopackages.Config{
				Context: t.Context(), Dir: "../..", Tests: true, ParseFile: declarationsOfOthers,
				Env:  append(os.Environ(), "GOOS=windows", "GOARCH="+arch, "CGO_ENABLED=0"),
				Mode: gopackages.NeedName | gopackages.NeedModule | gopackages.NeedTypes | gopackages.NeedTypesInfo | gopackages.NeedSyntax | gopackages.NeedImports | gopackages.NeedDeps,
			}, "./dataplane/windows/...", "./cmd/contiv-agent", "./cmd/contiv-cni", "./cmd/contiv-init", "./cmd/contiv-netctl")
			if err != nil {
				t.Fatal(err)
			}
			seen := 0
			gopackages.Visit(roots, nil, func(p *gopackages.Package) {
				if p.Module == nil || !p.Module.Main || strings.HasSuffix(p.ID, ".test") {
					return // the package is of another module, or is the main package that the go command generates for a test
				}
				seen++
				for _, err := range p.Errors {
					t.Errorf("%s: %v", p.PkgPath, err)
				}
			})
			if seen < 50 {
				t.Errorf("only %d packages of this module were checked; the agent has more", seen)
			}
		})
	}
}

// declarationsOfOthers parses a file, without the bodies of functions if it belongs to another module.
func declarationsOfOthers(files *token.FileSet, name string, src []byte) (*ast.File, error) {
	file, err := parser.ParseFile(files, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if root, err := os.Getwd(); err == nil && strings.HasPrefix(name, strings.TrimSuffix(root, "test/arch")) {
		return file, nil
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
	return file, nil
}
