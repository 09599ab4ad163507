package windataplane

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPromisesHaveTests: each test that README.md names exists.
func TestPromisesHaveTests(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	defined := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, dir := range []string{"dataplane/windows", "cmd/contiv-agent", "cmd/contiv-init", "k8s", "hack", "internal/durable",
		"plugins/service/renderer/hnssvc", "test/arch"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, m := range defined.FindAllSubmatch(source, -1) {
				there[string(m[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	named := regexp.MustCompile("`(Test[A-Z]\\w+)`").FindAllSubmatch(readme, -1)
	if len(named) < 40 {
		t.Errorf("README.md names %d tests only", len(named))
	}
	for _, m := range named {
		if !there[string(m[1])] {
			t.Errorf("README.md names %s, which does not exist", m[1])
		}
	}
}
