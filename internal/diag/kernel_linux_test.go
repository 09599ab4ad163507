package diag

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"contiv.dev/vswitch/internal/nsdo"
)

// TestKernelWhileItChanges checks that the kernel's state can be listed while pods are added and deleted.
func TestKernelWhileItChanges(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a network namespace")
	}
	name := fmt.Sprintf("cvd-%d", os.Getpid())
	ip := func(script string) *exec.Cmd {
		cmd := exec.Command("ip", "-n", name, "-batch", "-")
		cmd.Stdin = strings.NewReader(script)
		return cmd
	}
	if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	var script strings.Builder
	for i := range 150 {
		fmt.Fprintf(&script, "link add b%d type bridge\n", i)
	}
	if out, err := ip(script.String()).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	churn := ip(strings.Repeat("link add x type bridge\nlink del x\n", 500))
	if err := churn.Start(); err != nil {
		t.Fatal(err)
	}
	ns, err := nsdo.Open("/run/netns/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	err = ns.Do(func() error {
		for range 40 {
			k, err := readKernel()
			if err != nil {
				return err
			}
			if len(k.Links) < 150 {
				t.Errorf("%d links", len(k.Links))
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	_ = churn.Process.Kill()
	_ = churn.Wait() // returns an error because the process was killed
}
