package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// bannedRow is a row of the table "Banned words" in style.md: the word, and what to write instead.
var bannedRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.+) \\|$")

// banned returns the words of style.md that user-visible text must not have, as one pattern, and the advice for each.
func banned(t *testing.T) (*regexp.Regexp, map[string]string) {
	t.Helper()
	_, table, ok := strings.Cut(documents(t)["docs/style.md"], "## Banned words")
	if !ok {
		t.Fatal("docs/style.md has no section Banned words")
	}
	advice, words := map[string]string{}, []string{}
	for _, m := range bannedRow.FindAllStringSubmatch(table, -1) {
		for word := range strings.SplitSeq(m[1], ", ") {
			advice[word] = m[2]
			words = append(words, regexp.QuoteMeta(word))
		}
	}
	if len(words) < 20 {
		t.Fatalf("only %d banned words were found in docs/style.md", len(words))
	}
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(words, "|") + `)\b`), advice
}

// notVisible are folders whose strings no user sees: stand-ins and tools for tests, and generated code.
var notVisible = []string{
	"dataplane/vpp/vppfake/", "dataplane/vpp/vpptest/", "dataplane/vpp/binapi/",
}

// advisory is the folder of the tests whose errors are advice for contributors.
const advisory = "test/arch"

// goStrings calls visit with each string of the product's Go code that a user may see, and with those of the tests in advisory.
func goStrings(t *testing.T, visit func(where, text string)) {
	t.Helper()
	for _, top := range []string{"cmd", "internal", "plugins", "dataplane", "k8s", "hack", advisory} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(root, path)
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") && top != advisory ||
				strings.HasSuffix(path, ".pb.go") || belowAny(rel, notVisible) {
				return err
			}
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				if text, err := strconv.Unquote(lit.Value); err == nil && strings.Contains(text, " ") {
					visit(fmt.Sprintf("%s:%d", rel, fset.Position(lit.Pos()).Line), text)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func belowAny(path string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(path, p) {
			return true
		}
	}
	return false
}

// TestPlainEnglish checks that text for users (messages, errors, help, Events, documents, the chart, the page of `contiv-netctl ui`) and the
// errors of test/arch have no banned word.
// style.md itself is left out, because it lists the words.
func TestPlainEnglish(t *testing.T) {
	pattern, advice := banned(t)
	checked := 0
	look := func(where, text string) {
		checked++
		for _, word := range pattern.FindAllString(text, -1) {
			t.Errorf("%s: %q in %.140q: write %s", where, word, text, advice[strings.ToLower(word)])
		}
	}
	goStrings(t, look)
	if checked < 1000 {
		t.Errorf("only %d strings of Go code were checked", checked)
	}
	for name, text := range documents(t) {
		if name == "docs/style.md" || strings.HasPrefix(name, "test/") {
			continue
		}
		lines(name, text, look)
	}
	for _, folder := range []string{"k8s/contiv-vpp", "cmd/contiv-netctl/internal/ui/web"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			rel, _ := filepath.Rel(root, path)
			lines(rel, string(text), look)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// lines calls look with each line.
func lines(name, text string, look func(where, text string)) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		look(fmt.Sprintf("%s:%d", name, n), strings.TrimSpace(line))
	}
}
