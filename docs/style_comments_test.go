package docs

import (
	"cmp"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// inComments are words that comments must not have, besides the banned words of style.md: machines are not persons.
var inComments = regexp.MustCompile(`(?i)\b(?:who|whom|whosoever|learns|learnt|knows)\b`)

// commentsNotClean are folders whose comments still have such words. The list may only become shorter: a folder without such words must
// be removed from it. Today it is empty.
var commentsNotClean = []string{}

// wellFormed matches standard terms that contain a banned word.
var wellFormed = regexp.MustCompile(`\bwell[- ]formed\b|\bwho-has\b`)

// cComment matches a comment of C, or one that begins with `//`; shComment matches one of a shell script.
var (
	cComment  = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	shComment = regexp.MustCompile(`(?m)(?:^|[ \t])#[^!\n][^\n]*`)
)

// commentFiles has the smallest number of files that must be checked, by extension.
var commentFiles = map[string]int{".go": 1000, ".c": 20, ".h": 20, ".proto": 20, ".api": 1, ".js": 7, ".sh": 20}

// TestPlainEnglishInComments checks that comments of source files have none of the banned words, except in the folders of commentsNotClean.
func TestPlainEnglishInComments(t *testing.T) {
	pattern, advice := banned(t)
	found, folders, checked := map[string][]string{}, map[string]bool{}, map[string]int{}
	for _, top := range []string{"cmd", "internal", "plugins", "dataplane", "docker", "k8s", "hack", "test", "examples", "docs", "vagrant"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, _ := filepath.Rel(root, path)
			text, err := comments(path, rel)
			if err != nil || text == "" {
				return err
			}
			checked[filepath.Ext(path)]++
			text = wellFormed.ReplaceAllString(text, "")
			folder := filepath.Dir(rel)
			folders[folder] = true
			for _, word := range append(pattern.FindAllString(text, -1), inComments.FindAllString(text, -1)...) {
				fix := cmp.Or(advice[strings.ToLower(word)], "machines are not persons: docs/style.md, rule 3")
				found[folder] = append(found[folder], rel+": "+word+": "+fix)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for ext, least := range commentFiles {
		if checked[ext] < least {
			t.Errorf("only %d files *%s with comments were checked, want %d", checked[ext], ext, least)
		}
	}
	for folder := range folders {
		listed := slices.Contains(commentsNotClean, folder)
		switch hits := found[folder]; {
		case len(hits) > 0 && !listed:
			t.Errorf("%s: comments with banned words:\n\t%s", folder, strings.Join(hits, "\n\t"))
		case len(hits) == 0 && listed:
			t.Errorf("the comments of %s are clean: remove it from commentsNotClean", folder)
		}
	}
}

// comments returns the comments of a source file, each on one line; "" for files of other languages and for generated ones.
func comments(path, rel string) (string, error) {
	generated := strings.HasSuffix(path, ".pb.go") || strings.HasSuffix(path, ".ba.go") || strings.Contains(rel, "/binapi/") ||
		strings.Contains(rel, "/testdata/")
	switch ext := filepath.Ext(path); {
	case generated:
		return "", nil
	case ext == ".go":
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return "", err
		}
		var all strings.Builder
		for _, group := range f.Comments {
			words := strings.Fields(group.Text())
			if len(words) > 1 { // the first one may be an identifier
				all.WriteString(strings.Join(words[1:], " ") + "\n")
			}
		}
		return all.String(), nil
	case ext == ".c" || ext == ".h" || ext == ".proto" || ext == ".api" || ext == ".js":
		text, err := os.ReadFile(path)
		return strings.Join(cComment.FindAllString(string(text), -1), "\n"), err
	case ext == ".sh":
		text, err := os.ReadFile(path)
		return strings.Join(shComment.FindAllString(string(text), -1), "\n"), err
	}
	return "", nil
}
