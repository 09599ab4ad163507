package main

import (
	"context"
	"fmt"
	"go/types"
	"strings"

	"golang.org/x/tools/go/packages"
)

// unusedRows counts exported identifiers of package level that no other package uses, and those that only tests use. Methods
// and fields are left out: interfaces and encoders use them without naming them.
func unusedRows(ctx context.Context) ([]row, error) {
	all, err := packages.Load(&packages.Config{
		Context: ctx, Tests: true,
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedSyntax | packages.NeedImports | packages.NeedDeps,
	}, "./...")
	if err != nil {
		return nil, fmt.Errorf("load the module: %w", err)
	}
	exported, used, byTests := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, p := range all {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("load %s: %w", p.PkgPath, p.Errors[0])
		}
		for _, name := range p.Types.Scope().Names() {
			if o := p.Types.Scope().Lookup(name); o.Exported() && p.ID == p.PkgPath && !skip(p.PkgPath) {
				exported[key(o)] = true
			}
		}
		test := p.ID != p.PkgPath || strings.HasPrefix(p.PkgPath, module+"/test/")
		for _, o := range p.TypesInfo.Uses {
			if o.Pkg() == nil || o.Parent() != o.Pkg().Scope() || o.Pkg().Path() == strings.TrimSuffix(p.PkgPath, "_test") && !strings.HasSuffix(p.PkgPath, "_test") {
				continue
			}
			if test {
				byTests[key(o)] = true
			} else {
				used[key(o)] = true
			}
		}
	}
	none, tests := 0, 0
	for k := range exported {
		switch {
		case used[k]:
		case byTests[k]:
			tests++
		default:
			none++
		}
	}
	return []row{{"exported identifiers unused outside of their package", fmt.Sprintf("%d of %d, and %d used by tests only", none, len(exported), tests), "documented API only"}}, nil
}

// skip reports whether a package is generated, or a program.
func skip(path string) bool {
	for _, part := range []string{"/binapi", "/dataplane/nb", "/dataplane/proto", "/cmd/", "/test/", "/hack/"} {
		if strings.Contains(path, part) {
			return true
		}
	}
	return false
}

func key(o types.Object) string { return o.Pkg().Path() + "." + o.Name() }
