// Package lab checks the scripts that make the test cluster; they run in the tests of test/kube.
package lab

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestScripts checks the scripts with shellcheck.
func TestScripts(t *testing.T) {
	checker, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("there is no shellcheck here: install it")
	}
	scripts, err := filepath.Glob("*.sh")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	if out, err := exec.Command(checker, append([]string{"-x"}, scripts...)...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
