package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// unusedRows counts exported identifiers of package level that no other package needs, and those that only tests need. A package needs the
// identifiers that it names, the types in their declarations, and, if it names an exported constant or its type, all exported constants of the
// same declaration. Methods and fields are left out: interfaces and encoders use them without naming them. With names, each identifier has a row
// of its own.
func unusedRows(ctx context.Context, dir string, names bool) ([]row, error) {
	all, err := packages.Load(&packages.Config{
		Context: ctx, Dir: dir, Tests: true,
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedSyntax | packages.NeedImports | packages.NeedDeps,
	}, "./...")
	if err != nil {
		return nil, fmt.Errorf("load the module: %w", err)
	}
	exported, groups := map[string]types.Object{}, map[string][]types.Object{}
	var product, tests []types.Object
	for _, p := range all {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("load %s: %w", p.PkgPath, p.Errors[0])
		}
		for _, name := range p.Types.Scope().Names() {
			if o := p.Types.Scope().Lookup(name); o.Exported() && p.ID == p.PkgPath && !skip(p.PkgPath) {
				exported[key(o)] = o
			}
		}
		if p.ID == p.PkgPath {
			constants(groups, p)
		}
		test := p.ID != p.PkgPath || strings.HasPrefix(p.PkgPath, module+"/test/")
		for _, o := range p.TypesInfo.Uses {
			if o.Pkg() == nil || o.Parent() != o.Pkg().Scope() || o.Pkg().Path() == strings.TrimSuffix(p.PkgPath, "_test") && !strings.HasSuffix(p.PkgPath, "_test") {
				continue
			}
			if test {
				tests = append(tests, o)
			} else {
				product = append(product, o)
			}
		}
	}
	used, byTests := need(groups, product), need(groups, tests)
	var none, only []string
	for k := range exported {
		switch {
		case used[k]:
		case byTests[k]:
			only = append(only, k)
		default:
			none = append(none, k)
		}
	}
	rows := []row{{
		"exported identifiers that no other package needs", fmt.Sprintf("%d of %d, and %d that only tests need", len(none), len(exported), len(only)),
		"documented API only",
	}}
	if names {
		rows = append(append(rows, nameRows("needed by no package", none)...), nameRows("needed by tests only", only)...)
	}
	return rows, nil
}

func nameRows(what string, keys []string) (rows []row) {
	slices.Sort(keys)
	for _, k := range keys {
		rows = append(rows, row{"  " + strings.TrimPrefix(k, module+"/"), what, ""})
	}
	return rows
}

// constants adds to groups, by the key of each exported constant and of its type, the exported constants that are declared together with it.
func constants(groups map[string][]types.Object, p *packages.Package) {
	for _, f := range p.Syntax {
		for _, d := range f.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.CONST {
				continue
			}
			var group []types.Object
			for _, spec := range decl.Specs {
				for _, id := range spec.(*ast.ValueSpec).Names {
					if o := p.TypesInfo.Defs[id]; id.IsExported() {
						group = append(group, o)
					}
				}
			}
			for _, o := range group {
				groups[key(o)] = append(groups[key(o)], group...)
				if named, ok := o.Type().(*types.Named); ok {
					groups[key(named.Obj())] = append(groups[key(named.Obj())], o)
				}
			}
		}
	}
}

// need returns the set of objects that a user of the given objects needs, by key.
func need(groups map[string][]types.Object, objects []types.Object) map[string]bool {
	needed := map[string]bool{}
	for len(objects) > 0 {
		o := objects[len(objects)-1]
		objects = objects[:len(objects)-1]
		if needed[key(o)] {
			continue
		}
		needed[key(o)] = true
		objects = append(append(objects, declared(o)...), groups[key(o)]...)
	}
	return needed
}

// declared returns the named types of this module in the declaration of an object, including the types of its exported fields and methods.
func declared(o types.Object) (objects []types.Object) {
	seen := map[types.Type]bool{}
	var walk func(t types.Type)
	name := func(n *types.TypeName, args *types.TypeList) {
		if n.Pkg() != nil && strings.HasPrefix(n.Pkg().Path(), module) {
			objects = append(objects, n)
		}
		for i := range args.Len() {
			walk(args.At(i))
		}
	}
	walk = func(t types.Type) {
		if seen[t] {
			return
		}
		seen[t] = true
		switch t := t.(type) {
		case *types.Alias:
			name(t.Obj(), t.TypeArgs())
		case *types.Named:
			name(t.Obj(), t.TypeArgs())
		case *types.Map:
			walk(t.Key())
			walk(t.Elem())
		case interface{ Elem() types.Type }: // pointer, slice, array, channel
			walk(t.Elem())
		case *types.TypeParam:
			walk(t.Constraint())
		case *types.Signature:
			for i := range t.TypeParams().Len() {
				walk(t.TypeParams().At(i))
			}
			for _, tuple := range []*types.Tuple{t.Params(), t.Results()} {
				for i := range tuple.Len() {
					walk(tuple.At(i).Type())
				}
			}
		case *types.Struct:
			for i := range t.NumFields() {
				if f := t.Field(i); f.Exported() {
					walk(f.Type())
				}
			}
		case *types.Interface:
			for i := range t.NumMethods() {
				walk(t.Method(i).Type())
			}
			for i := range t.NumEmbeddeds() {
				walk(t.EmbeddedType(i))
			}
		}
	}
	typ, ok := o.(*types.TypeName)
	if !ok {
		walk(o.Type())
		return objects
	}
	if alias, ok := typ.Type().(*types.Alias); ok {
		walk(alias.Rhs())
		return objects
	}
	walk(typ.Type().Underlying())
	if named, ok := typ.Type().(*types.Named); ok {
		for m := range named.Methods() {
			if m.Exported() {
				walk(m.Type())
			}
		}
	}
	return objects
}

// skip reports whether a package is generated, or a program.
func skip(path string) bool {
	for _, part := range []string{"/binapi", "/dataplane/nb", "/dataplane/proto", "/kube/model", "/idallocation", "/vppnode", "/cmd/", "/test/", "/hack/"} {
		if strings.Contains(path, part) {
			return true
		}
	}
	return false
}

func key(o types.Object) string { return o.Pkg().Path() + "." + o.Name() }
