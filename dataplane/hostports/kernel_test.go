package hostports

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed/netns"
)

// kernel is a network namespace in whose kernel the tables are written.
type kernel struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // of the test
	*netns.Namespace
}

// newKernel skips the test if the program that writes the rules is missing, or without root.
func newKernel(t *testing.T, program string) *kernel {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil || os.Geteuid() != 0 {
		t.Skipf("there is no %s here, or no root", program)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	ns, err := netns.New(ctx, fmt.Sprintf("cvh%s%d", program[:1], os.Getpid()%100000))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Delete(context.WithoutCancel(ctx)) })
	return &kernel{t, ctx, ns}
}

// must returns the output of a shell command in the namespace.
func (k *kernel) must(command string) string {
	k.t.Helper()
	out, err := k.Run(k.ctx, "sh", "-c", command)
	if err != nil {
		k.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return out
}

// clean removes the leftovers of earlier agents.
func (k *kernel) clean(nft NFT) {
	k.t.Helper()
	if err := k.Do(func() error { return Leftovers(k.ctx, nft, IPTablesCommand) }); err != nil {
		k.t.Fatal(err)
	}
}
