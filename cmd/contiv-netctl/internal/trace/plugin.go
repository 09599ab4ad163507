package trace

import (
	"net/netip"
	"regexp"
	"strings"
)

// pluginNodes is the name prefix of the graph nodes of our VPP plugin (dataplane/vpp/plugin).
const pluginNodes = "contiv-"

// pluginLine matches the first line of such a node's trace: verdict, reason, and further details.
var pluginLine = regexp.MustCompile(`^sw_if_index \d+: (\w+), (.*?)(, fragment)?(?:, connection (\d+))?$`)

// pluginWhat describes what the plugin did with a packet. After the first line come the packet as it arrived, and after "as" the packet after
// translation.
func pluginWhat(lines []string) string {
	m := pluginLine.FindStringSubmatch(firstLine(lines))
	if m == nil {
		return firstLine(lines)
	}
	verdict, reason, connection := m[1], m[2], m[4]
	text := reason
	if verdict == "drop" || verdict == "reject" || verdict == "wait" {
		text = verdict + ": " + reason
	}
	if m[3] != "" {
		text += ", by the ports of the first fragment"
	}
	came, became := pluginEnds(lines)
	switch {
	case connection == "" && verdict == "drop" && became != "" && became != came:
		text += ": " + came + " would become " + became
	case came == "" || connection == "":
	case became == "" || became == came:
		text += ": " + came
	default:
		text += ": " + came + " becomes " + became
	}
	if connection != "" {
		text += " (connection " + connection + ")"
	}
	return text
}

// deniedEnds returns the ends that a packet would have after service translation, if network policy had not denied the translated packet.
func deniedEnds(h vppHop) (came, left Ends, ok bool) {
	m := pluginLine.FindStringSubmatch(firstLine(h.lines))
	if m == nil || m[1] != "drop" || m[4] != "" {
		return came, left, false
	}
	parse := func(text string) (e Ends, ok bool) {
		src, dst, _ := strings.Cut(text, " -> ")
		var errSrc, errDst error
		e.Source, errSrc = netip.ParseAddrPort(src)
		e.Dest, errDst = netip.ParseAddrPort(dst)
		return e, errSrc == nil && errDst == nil
	}
	before, after := pluginEnds(h.lines)
	came, ok1 := parse(before)
	left, ok2 := parse(after)
	return came, left, ok1 && ok2 && came != left
}

// pluginEnds returns the ends of a packet before and after translation: "10.1.1.4:4711 -> 10.96.0.10:80".
func pluginEnds(lines []string) (came, became string) {
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) < 4 || f[len(f)-2] != "->" {
			continue
		}
		ends := strings.Join(f[len(f)-3:], " ")
		if f[0] == "as" {
			became = ends
		} else {
			came = ends
		}
	}
	return came, became
}
