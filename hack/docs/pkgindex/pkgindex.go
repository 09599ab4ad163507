package pkgindex

import (
	"bytes"
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
)

const intro = `# Packages

Generated from the comments of the packages by ` + "`make docs`" + `; do not edit. A test fails when this page and the code differ. Generated packages
are not listed. [The architecture](architecture.md) has the layers.
`

// tops are the folders on the page, in order.
var tops = []string{"cmd", "plugins", "dataplane", "internal", "k8s", "hack", "docs", "test", "vagrant"}

// subject matches the first words of a package comment.
var subject = regexp.MustCompile(`^(?:Package|Command) [\w-]+ `)

// Page returns the document for the module in the directory root.
func Page(root string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(intro)
	for _, top := range tops {
		fmt.Fprintf(&b, "\n## %s\n\n| package | purpose |\n|---|---|\n", top)
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if d.Name() == "testdata" {
				return filepath.SkipDir
			}
			sentence, err := purpose(path)
			if err != nil || sentence == "" {
				return err
			}
			rel, err := filepath.Rel(root, path)
			fmt.Fprintf(&b, "| `%s` | %s |\n", filepath.ToSlash(rel), strings.ReplaceAll(sentence, "|", `\|`))
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// purpose returns the first sentence of a package's comment without its subject; "" if the folder has no package with a comment.
func purpose(folder string) (string, error) {
	for _, name := range []string{"doc.go", "main.go"} {
		path := filepath.Join(folder, name)
		if matches, _ := filepath.Glob(path); len(matches) == 0 {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return "", err
		}
		if f.Doc != nil {
			return subject.ReplaceAllString((&doc.Package{}).Synopsis(f.Doc.Text()), ""), nil
		}
	}
	return "", nil
}
