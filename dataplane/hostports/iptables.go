package hostports

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"

	linux_nodeports "contiv.dev/vswitch/dataplane/nb/linux/nodeports"
)

// A host without nft cannot change source addresses after the rules of other programs: iptables has no hook there. So the method is reversed:
// packets of the host's own processes get an address that no other packets get, and VPP treats only this address as the node's own. A rule of
// another program that runs first can only remove the node's privilege, and never give it to forwarded packets.

// IPTables runs an iptables program with input, and returns its output. family is that of the addresses; what is the suffix of the program's
// name: "", "-save" or "-restore".
type IPTables func(ctx context.Context, family linux_nodeports.Family, what, input string, args ...string) (string, error)

// Choose detects the tools in the process's network namespace: if nft works, it returns nil.
func Choose(ctx context.Context, nft NFT) IPTables {
	if _, err := nft(ctx, "", "list", "tables"); err == nil {
		return nil
	}
	return IPTablesCommand
}

// IPTablesCommand runs the iptables programs in the process's own network namespace: the host's default variant, or the legacy variant if the
// kernel does not support the default.
func IPTablesCommand(ctx context.Context, family linux_nodeports.Family, what, input string, args ...string) (out string, err error) {
	base := map[linux_nodeports.Family]string{linux_nodeports.Family_IPV4: "iptables", linux_nodeports.Family_IPV6: "ip6tables"}[family]
	for _, variant := range []string{"", "-legacy"} {
		if out, err = command(ctx, base+variant+what, input, args...); err == nil {
			return out, nil
		}
	}
	return "", err
}

func command(ctx context.Context, name, input string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// layer is an iptables table that contains our chain, which the first rule of hook calls.
type layer struct{ name, hook string }

var layers = []layer{{"nat", "POSTROUTING"}, {"mangle", "FORWARD"}}

func (l layer) jump() string { return "-A " + l.hook + " -j " + forwardedTable }

// forwardedRules returns the rules of our chains, by table. The mark is in a rule that matches every packet and has no action.
func forwardedRules(f *linux_nodeports.Forwarded) (rules map[string][]string, mark string) {
	var nat, mangle []string
	if f.Translated != "" {
		nat = append(nat, fmt.Sprintf("-o %s -m conntrack --ctstate DNAT -m addrtype ! --src-type LOCAL -j SNAT --to-source %s", f.Device, f.Translated))
		mangle = append(mangle, fmt.Sprintf("-i %s -d %s -j DROP", f.Device, f.Translated)) // of a connection that has ended
	}
	nat = append(nat, fmt.Sprintf("-o %s -m addrtype --src-type LOCAL -j SNAT --to-source %s", f.Device, f.Self))
	mangle = append(mangle, fmt.Sprintf("-i %s -d %s -j DROP", f.Device, f.Self))
	for _, a := range append([]string{f.Self}, f.Others...) {
		mangle = append(mangle, fmt.Sprintf("-o %s -m conntrack --ctdir ORIGINAL --ctrepldst %s -j DROP", f.Device, a))
	}
	_, mark = finish("", "", strings.Join(nat, "\n")+"\n"+strings.Join(mangle, "\n"))
	return map[string][]string{"nat": append(nat, "-m comment --comment "+mark), "mangle": mangle}, mark
}

// writeRules replaces the chains, each table atomically, and puts the jumps to them at the first position.
func (t *Tables) writeRules(ctx context.Context, f *linux_nodeports.Forwarded) error {
	rules, _ := forwardedRules(f)
	var b strings.Builder
	for _, l := range layers {
		places, err := t.places(ctx, f.Family, l)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "*%s\n:%s - [0:0]\n", l.name, forwardedTable)
		for _, r := range rules[l.name] {
			fmt.Fprintf(&b, "-A %s %s\n", forwardedTable, r)
		}
		if len(places) != 1 || places[0] != 1 {
			b.WriteString(strings.Repeat(fmt.Sprintf("-D %s -j %s\n", l.hook, forwardedTable), len(places)))
			fmt.Fprintf(&b, "-I %s 1 -j %s\n", l.hook, forwardedTable)
		}
		b.WriteString("COMMIT\n")
	}
	_, err := t.iptables(ctx, f.Family, "-restore", b.String(), "--noflush")
	return err
}

// places returns the positions of our jumps among the rules of a hook, starting at 1.
func (t *Tables) places(ctx context.Context, f linux_nodeports.Family, l layer) (places []int, err error) {
	saved, err := t.iptables(ctx, f, "-save", "", "-t", l.name)
	n := 0
	for line := range strings.Lines(saved) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "-A "+l.hook+" ") {
			if n++; line == l.jump() {
				places = append(places, n)
			}
		}
	}
	return places, err
}

// listRules returns our rules, including the positions of the jumps; "": there are none.
func (t *Tables) listRules(ctx context.Context, f linux_nodeports.Family) (string, error) {
	var b strings.Builder
	for _, l := range layers {
		saved, err := t.iptables(ctx, f, "-save", "", "-t", l.name)
		if err != nil {
			return "", err
		}
		for line := range strings.Lines(saved) {
			if strings.HasPrefix(line, "-A "+forwardedTable+" ") {
				b.WriteString(l.name + " " + line)
			}
		}
		places, err := t.places(ctx, f, l)
		if err != nil {
			return "", err
		}
		if len(places) > 0 {
			fmt.Fprintln(&b, l.name, l.jump(), places)
		}
	}
	return b.String(), nil
}

// removeRules removes the chains and the jumps to them, if they exist.
func removeRules(ctx context.Context, iptables IPTables, f linux_nodeports.Family) error {
	var b strings.Builder
	for _, l := range layers {
		saved, err := iptables(ctx, f, "-save", "", "-t", l.name)
		if err != nil {
			return err
		}
		if !strings.Contains(saved, "\n:"+forwardedTable+" ") {
			continue
		}
		fmt.Fprintf(&b, "*%s\n", l.name)
		b.WriteString(strings.Repeat(fmt.Sprintf("-D %s -j %s\n", l.hook, forwardedTable), strings.Count(saved, l.jump()+"\n")))
		fmt.Fprintf(&b, "-F %[1]s\n-X %[1]s\nCOMMIT\n", forwardedTable)
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := iptables(ctx, f, "-restore", b.String(), "--noflush")
	return err
}
