package nat44

import (
	"net/netip"
	"strconv"
	"strings"

	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// natMark is the content of the tag of a mapping: the label of its DNat44 and the data of the mapping that VPP does not report.
// The tag is "cv:label", or "cv:@a300;p10.0.0.1;s@label" with affinity (seconds), address of the twice-NAT pool, and
// self-twice-NAT.
type natMark struct {
	label    string
	affinity uint32
	pool     netip.Addr
	self     bool
}

const natMarkSign = "@"

func (m natMark) tag() string {
	prefix := kit.TagPrefix + m.attributes()
	return prefix + kit.ShortName(m.label, prefix)
}

func (m natMark) attributes() string {
	var parts []string
	if m.affinity != 0 {
		parts = append(parts, "a"+strconv.FormatUint(uint64(m.affinity), 10))
	}
	if m.pool.IsValid() {
		parts = append(parts, "p"+m.pool.String())
	}
	if m.self {
		parts = append(parts, "s")
	}
	if len(parts) == 0 && !strings.HasPrefix(m.label, natMarkSign) {
		return ""
	}
	return natMarkSign + strings.Join(parts, ";") + natMarkSign
}

// natMarkOf parses a tag; false if the tag is not ours. The label may have been cut.
func natMarkOf(tag string) (m natMark, ours bool) {
	rest, ours := strings.CutPrefix(tag, kit.TagPrefix)
	if !ours {
		return m, false
	}
	m.label = rest
	inner, ok := strings.CutPrefix(rest, natMarkSign)
	if !ok {
		return m, true
	}
	attributes, label, ok := strings.Cut(inner, natMarkSign)
	if !ok {
		return m, true
	}
	m.label = label
	for part := range strings.SplitSeq(attributes, ";") {
		switch {
		case part == "s":
			m.self = true
		case strings.HasPrefix(part, "a"):
			n, _ := strconv.ParseUint(part[1:], 10, 32)
			m.affinity = uint32(n)
		case strings.HasPrefix(part, "p"):
			m.pool = kit.Addr(part[1:])
		}
	}
	return m, true
}

// fullLabel returns the full label of a dumped mapping: that of the desired mapping if the tag may have been cut from it.
func (m natMark) fullLabel(desired string) string {
	wanted := m
	wanted.label = desired
	if desired != m.label && wanted.tag() == m.rawTag() {
		return desired
	}
	return m.label
}

func (m natMark) rawTag() string { return kit.TagPrefix + m.attributes() + m.label }
