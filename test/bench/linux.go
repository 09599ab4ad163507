package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// pair compares two Go benchmarks of a package that run one after the other in the same process.
type pair struct {
	what, ours, theirs string
}

// linuxBenches returns the pairs by package. The benchmarks themselves are in the packages, beside the code that
// they measure.
func linuxBenches() []struct {
	pkg   string
	pairs []pair
} {
	return []struct {
		pkg   string
		pairs []pair
	}{
		{"dataplane/linux/nft/policy", []pair{
			{"nft: one member of one set among 2,000, to `nft -f`", "Member/sets=2000", "NftTool/member"},
			{"nft: 5,000 chains of 10 rules, cold, to `nft -f`", "ColdStart", "NftTool/cold"},
			{"nft: the same to the raw netlink floor", "ColdStart", "RawFloor"},
			{"nft: restart unchanged to cold", "Restart", "ColdStart"},
			{"nft: one endpoint among 500 to one among 10", "Endpoint/among=500", "Endpoint/among=10"},
		}},
		{"dataplane/linux/ipset", []pair{
			{"ipset: one member of one set among 2,000, to `ipset`", "OneMemberOf2000Sets", "OneMemberOf2000SetsExec"},
			{"ipset: 100,000 members, to `ipset restore`", "100kMembers", "100kMembersExec"},
		}},
		{"dataplane/linux/iptables", []pair{
			{"iptables: one chain of 5,000, to iptables-save and -restore", "OneChainOf5000/nft", "OneChainOf5000Exec/nft"},
			{"iptables: 5,000 chains of 10 rules, cold, to iptables-restore", "Cold5000Chains/nft", "Cold5000ChainsExec/nft"},
		}},
		{"dataplane/linux/routetable", []pair{
			{"10,000 routes, to `ip -batch`", "Cold", "IPBatch"},
			{"10,000 routes, to the raw netlink floor", "Cold", "Floor"},
			{"routes: restart unchanged to cold", "Restart", "Cold"},
		}},
	}
}

// benchLinux runs the Go benchmarks of the Linux dataplane and prints their ratios.
func benchLinux(ctx context.Context, e *env) error {
	for _, b := range linuxBenches() {
		took, err := goBench(ctx, b.pkg, b.pairs)
		if err != nil {
			return fmt.Errorf("%s: %w", b.pkg, err)
		}
		for _, p := range b.pairs {
			ours, theirs := took[p.ours], took[p.theirs]
			if ours == 0 || theirs == 0 {
				fmt.Printf("   %-66s left out: a tool is not there\n", p.what)
				continue
			}
			fmt.Printf("   %-66s %8.3fx  (%s / %s)\n", p.what, float64(ours)/float64(theirs), short(ours), short(theirs))
			e.record(p.what, "ms", milliseconds("contiv", ours), milliseconds("compared with", theirs))
		}
	}
	return nil
}

func short(d time.Duration) string { return d.Round(max(d/1000, time.Microsecond)).String() }

var benchLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op`)

// goBench runs the benchmarks that the pairs name and returns the time of one operation of each.
func goBench(ctx context.Context, pkg string, pairs []pair) (map[string]time.Duration, error) {
	tops := map[string]bool{}
	for _, p := range pairs {
		for _, name := range []string{p.ours, p.theirs} {
			top, _, _ := strings.Cut(name, "/")
			tops[top] = true
		}
	}
	var names []string
	for top := range tops {
		names = append(names, top)
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^Benchmark("+strings.Join(names, "|")+")$",
		"-benchtime", "5x", "-timeout", "15m", "contiv.dev/vswitch/"+pkg)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	took := map[string]time.Duration{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if m := benchLine.FindStringSubmatch(lines.Text()); m != nil {
			if ns, perr := strconv.ParseFloat(m[2], 64); perr == nil {
				took[m[1]] = time.Duration(ns)
			}
		}
	}
	if err != nil {
		err = errors.Join(err, errors.New(strings.TrimSpace(stderr.String()+string(out))))
	}
	return took, err
}
