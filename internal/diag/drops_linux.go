package diag

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
)

// kernelCounters are the counters of dropped packets in /proc/net: the line's name and the field.
var kernelCounters = []struct{ line, field, reason, means string }{
	{"Ip", "InHdrErrors", "bad header, or TTL expired", "there is a routing loop, or a traceroute ran"},
	{"Ip", "InAddrErrors", "bad destination address", "a packet was for an address that this node does not accept"},
	{"Ip", "InDiscards", "discarded on receipt", "the kernel had no memory for the packet"},
	{"Ip", "OutDiscards", "discarded on sending", "a rule of nf_tables dropped what this node sent, or a queue was full"},
	{"Ip", "OutNoRoutes", "no route to send by", "this node has no route to the destination"},
	{"IpExt", "InNoRoutes", "no route to forward by", "no route leads to the destination"},
	{"TcpExt", "IPReversePathFilter", "source check (rp_filter)", "the source address has no route back by the device that the packet came by"},
	{"Ip6", "InHdrErrors", "bad header, or hop limit expired", "there is a routing loop, or a traceroute ran"},
	{"Ip6", "InAddrErrors", "bad destination address", "a packet was for an address that this node does not accept"},
	{"Ip6", "InDiscards", "discarded on receipt", "the kernel had no memory for the packet"},
	{"Ip6", "OutDiscards", "discarded on sending", "a rule of nf_tables dropped what this node sent, or a queue was full"},
	{"Ip6", "OutNoRoutes", "no route to send by", "this node has no route to the destination"},
	{"Ip6", "InNoRoutes", "no route to forward by", "no route leads to the destination"},
	{"Ip6", "InTooBigErrors", "larger than the MTU", "the sender ignores the MTU, or ICMP errors do not reach it"},
	{"conntrack", "insert_failed", "connection not recorded", "two packets of one connection arrived at the same time, or its source port is taken"},
	{"conntrack", "drop", "connection table is full", "raise net.netfilter.nf_conntrack_max"},
	{"conntrack", "early_drop", "old connection removed for a new one", "the connection table is nearly full: raise net.netfilter.nf_conntrack_max"},
}

// kernelDrops returns the drops of the kernel in the agent's network namespace: by the network layer, and by devices.
func kernelDrops() ([]DropCounter, error) {
	counters := map[string]uint64{}
	for file, parse := range map[string]func(map[string]uint64, string){
		"/proc/net/snmp": parsePairs, "/proc/net/netstat": parsePairs, "/proc/net/snmp6": parseSNMP6,
		"/proc/net/stat/nf_conntrack": parseConntrack,
	} {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // no IPv6, or no connection tracking
		}
		if err != nil {
			return nil, err
		}
		parse(counters, string(text))
	}
	out := []DropCounter{}
	names := map[string]string{"Ip": "IPv4", "IpExt": "IPv4", "TcpExt": "IPv4", "Ip6": "IPv6", "conntrack": "conntrack"}
	for _, k := range kernelCounters {
		if n := counters[k.line+"."+k.field]; n > 0 {
			out = append(out, DropCounter{names[k.line], k.reason, n, k.means})
		}
	}
	links, err := whole(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("links: %w", err)
	}
	for _, l := range links {
		if n := l.Attrs().Statistics; n != nil {
			out = addDevice(out, l.Attrs().Name, n)
		}
	}
	return out, nil
}

func addDevice(out []DropCounter, name string, n *netlink.LinkStatistics) []DropCounter {
	for _, c := range []DropCounter{
		{name, "dropped on receipt", n.RxDropped, "a queue was full, or no program receives packets of this protocol"},
		{name, "dropped on sending", n.TxDropped, "the device was down, its queue was full, or a tunnel had no entry for the destination"},
		{name, "damaged", n.RxErrors + n.TxErrors, "cable, NIC or driver"},
		{name, "no room in the NIC", n.RxMissedErrors + n.RxFifoErrors, "packets arrived faster than the machine processed them"},
	} {
		if c.Count > 0 {
			out = append(out, c)
		}
	}
	return out
}

// parsePairs parses /proc/net/snmp and netstat: a line of names, a line of numbers.
func parsePairs(into map[string]uint64, text string) {
	var names []string
	for sc := bufio.NewScanner(strings.NewReader(text)); sc.Scan(); {
		fields := strings.Fields(sc.Text())
		if len(fields) == 0 {
			continue
		}
		if names == nil || names[0] != fields[0] {
			names = fields
			continue
		}
		for i := 1; i < min(len(fields), len(names)); i++ {
			if n, err := strconv.ParseUint(fields[i], 10, 64); err == nil {
				into[strings.TrimSuffix(fields[0], ":")+"."+names[i]] = n
			}
		}
		names = nil
	}
}

// parseSNMP6 parses /proc/net/snmp6: a name and a number in each line.
func parseSNMP6(into map[string]uint64, text string) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			continue
		}
		if name, ok := strings.CutPrefix(fields[0], "Ip6"); ok {
			if n, err := strconv.ParseUint(fields[1], 10, 64); err == nil {
				into["Ip6."+name] = n
			}
		}
	}
}

// parseConntrack parses /proc/net/stat/nf_conntrack: a line of names, and one of hexadecimal numbers for each CPU.
func parseConntrack(into map[string]uint64, text string) {
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if names == nil {
			names = fields
			continue
		}
		for i := range min(len(fields), len(names)) {
			if n, err := strconv.ParseUint(fields[i], 16, 64); err == nil {
				into["conntrack."+names[i]] += n
			}
		}
	}
}
