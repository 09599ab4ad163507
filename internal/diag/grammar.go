package diag

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// maxCommand is longer than any command that a user types.
const maxCommand = 512

// errNotRead is the error for commands that are not known to be read-only.
var errNotRead = errors.New("not on the list of commands that only read")

// The kinds of arguments in readCommands.
const (
	argNumber = "<n>"    // a number
	argPrefix = "<addr>" // an address or network
	argName   = "<if>"   // the name of an interface, which the command reads up to the end of the name
)

// readCommands are the read-only commands, as whole words: first the words in this order, after the bar the words that may follow in any
// number and order. VPP accepts abbreviations, and runs the unread rest of a line as the next command ("show version create loopback
// interface" makes a loopback), so a command that does not match to its last word is not known to be read-only.
func readCommands() []string {
	return []string{
		"show version | verbose cmdline",
		"show interface | <if>", "show interface address | <if>", "show interface features | <if>",
		"show interface rx-placement", "show interface secondary-mac-address", "show interface tag",
		"show hardware-interfaces | <if> brief verbose detail",
		"show ip fib | table <n> <addr> summary detail memory", "show ip6 fib | table <n> <addr> summary detail memory",
		"show ip mfib", "show ip6 mfib", "show ip table", "show ip6 table", "show ip neighbors", "show ip6 neighbors",
		"show ip neighbor", "show ip6 neighbor", "show ip local", "show ip interface", "show ip6 interface <if>",
		"show ip neighbor-config", "show adj | <n>", "show fib entry | <n>", "show load-balance | <n>", "show adjacency counters",
		"show arp proxy", "show bridge-domain | <n> detail int arp bd-tag", "show l2fib | verbose all bd_id <n>", "show mode",
		"show vxlan tunnel | raw", "show ipip tunnel", "show gre tunnel", "show tap", "show memif", "show virtio pci",
		"show vhost-user", "show af_packet", "show bond", "show lcp", "show pci | all", "show dpdk buffer", "show dpdk version",
		"show errors | verbose", "show runtime | max summary", "show trace | max <n>", "show node counters",
		"show buffers", "show memory | main-heap api-segment stats-segment verbose map", "show physmem", "show cpu", "show clock",
		"show threads", "show plugins", "show logging", "show log", "show unix errors", "show unix files", "show api clients",
		"show api status", "show api histogram", "show statistics segment", "show event-logger", "show frame-queue",
		"show nat44 summary", "show nat44 sessions | detail", "show nat44 addresses", "show nat44 interfaces",
		"show nat44 interface address", "show nat44 static mappings", "show nat44 hash tables", "show nat timeouts",
		"show nat workers", "show nat mss-clamping", "show nat64 bib all", "show nat64 session table all", "show nat66 static " +
			"mappings",
		"show acl-plugin acl", "show acl-plugin interface", "show acl-plugin sessions", "show acl-plugin tables",
		"show dhcp client", "show dhcp6 clients", "show sr localsids", "show sr policies", "show sr steering-policies",
		"show abf policy", "show abf attach <if>", "show classify tables | " +
			"verbose", "show udp punt", "show udp ports", "show features",
		"show ipsec all", "show ipsec sa", "show ipsec spd", "show inacl type ip4", "show session | verbose",
		"show lb", "show lb vips", "show pbl", "show vcdp", "show wireguard interface", "show wireguard peer",
	}
}

// readOnly returns the reason why a command may change VPP's state; nil if it cannot.
func readOnly(command string) error {
	if err := plainText(command); err != nil {
		return err
	}
	words := strings.Fields(command)
	for _, pattern := range readCommands() {
		if matches(pattern, words) {
			return nil
		}
	}
	return fmt.Errorf("%q: %w; write its words in full, or allow writing if the command changes the state", command, errNotRead)
}

// plainText rejects text that a terminal or VPP would read as more than one line.
func plainText(command string) error {
	switch {
	case strings.TrimSpace(command) == "":
		return errors.New("no command given")
	case len(command) > maxCommand:
		return fmt.Errorf("the command has %d characters; use at most %d", len(command), maxCommand)
	}
	for _, r := range command {
		if r < ' ' || r > '~' {
			return fmt.Errorf("the command has the character %q; use printable ASCII on one line", r)
		}
	}
	return nil
}

func matches(pattern string, words []string) bool {
	fixed, rest, _ := strings.Cut(pattern, "|")
	want := strings.Fields(fixed)
	if len(words) < len(want) {
		return false
	}
	for i, w := range want {
		if !fits(w, words[i]) {
			return false
		}
	}
	free := strings.Fields(rest)
next:
	for _, word := range words[len(want):] {
		for _, f := range free {
			if fits(f, word) {
				continue next
			}
		}
		return false
	}
	return true
}

// fits reports whether a word matches an element of a pattern. Interface names end in a digit, which no command does; for an unknown name
// VPP returns an error and reads no further.
func fits(want, word string) bool {
	switch want {
	case argNumber:
		_, err := strconv.ParseUint(word, 10, 32)
		return err == nil
	case argPrefix:
		if _, err := netip.ParsePrefix(word); err == nil {
			return true
		}
		addr, err := netip.ParseAddr(word)
		return err == nil && addr.Zone() == ""
	case argName:
		last := word[len(word)-1]
		return last >= '0' && last <= '9'
	}
	return want == word
}
