package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = ".."

// documents returns all Markdown files of the project, by their paths from its root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		texts[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

var (
	linkPattern    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headingPattern = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	spanPattern    = regexp.MustCompile("`([^`\n]+(?:\n[^`\n]+)?)`")
	notInAnchor    = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// links returns the targets of a document's links into the project: the file, by its path from the root, and the
// heading.
func links(name, text string) (targets [][2]string) {
	for _, m := range linkPattern.FindAllStringSubmatch(text, -1) {
		if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
			continue
		}
		file, anchor, _ := strings.Cut(m[1], "#")
		if file == "" {
			file = filepath.Base(name)
		}
		targets = append(targets, [2]string{filepath.Join(filepath.Dir(name), file), anchor})
	}
	return targets
}

// anchors returns the names of a document's headings, as GitHub generates them.
func anchors(text string) (names []string) {
	prose, _ := parts(text)
	for _, m := range headingPattern.FindAllStringSubmatch(prose, -1) {
		name := notInAnchor.ReplaceAllString(strings.ToLower(m[1]), "")
		names = append(names, strings.ReplaceAll(strings.TrimSpace(name), " ", "-"))
	}
	return names
}

// TestLinks checks that the targets of links exist, including the headings.
func TestLinks(t *testing.T) {
	texts := documents(t)
	checked := 0
	for name, text := range texts {
		for _, link := range links(name, text) {
			checked++
			if _, err := os.Stat(filepath.Join(root, link[0])); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, link[0])
			} else if link[1] != "" && !slices.Contains(anchors(texts[link[0]]), link[1]) {
				t.Errorf("%s links to %s#%s, but has no such heading: %v", name, link[0], link[1], anchors(texts[link[0]]))
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d links were found", checked)
	}
}

// TestReachable checks that every document can be reached from the README. A link to a folder counts as a link to its
// README.
func TestReachable(t *testing.T) {
	texts := documents(t)
	seen := map[string]bool{}
	for todo := []string{"README.md"}; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		for _, link := range links(name, texts[name]) {
			if _, ok := texts[link[0]]; ok {
				todo = append(todo, link[0])
			} else if _, ok := texts[filepath.Join(link[0], "README.md")]; ok {
				todo = append(todo, filepath.Join(link[0], "README.md"))
			}
		}
	}
	for name := range texts {
		if !seen[name] {
			t.Errorf("no way by links from README.md to %s", name)
		}
	}
}

// TestTargets checks that every `make …` in a document is a target of the Makefile, and that every target is
// explained there.
func TestTargets(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	target := regexp.MustCompile(`\bmake ([a-z][a-z0-9-]*)`)
	checked := 0
	for name, text := range documents(t) {
		for _, code := range fragments(text) {
			for _, m := range target.FindAllStringSubmatch(code, -1) {
				checked++
				if !regexp.MustCompile(`(?m)^` + m[1] + `:.*## `).Match(makefile) {
					t.Errorf("%s: the Makefile has no target %s", name, m[1])
				}
			}
		}
	}
	if checked < 5 {
		t.Errorf("only %d targets were found", checked)
	}
}

// parts returns the prose of a document, and its lines of code, with continued lines joined.
func parts(text string) (prose string, code []string) {
	fenced := false
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case fenced || strings.HasPrefix(line, "    "):
			code = append(code, strings.TrimSpace(line))
		default:
			prose += line
		}
	}
	return prose, code
}

// fragments returns all code in a document: lines of blocks, and spans.
func fragments(text string) []string {
	prose, all := parts(text)
	for _, m := range spanPattern.FindAllStringSubmatch(prose, -1) {
		all = append(all, strings.ReplaceAll(m[1], "\n", " "))
	}
	return all
}
