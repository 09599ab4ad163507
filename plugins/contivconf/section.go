package contivconf

import (
	"fmt"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/didyoumean"
)

// MissingSection returns a message if the file has sections for nodes, but none for this one; otherwise the message is empty. mistyped is
// true if the name of a section is so similar to this node's name that it was probably meant for this node.
func (c *Config) MissingSection() (text string, mistyped bool) {
	if len(c.sections) == 0 || slices.Contains(c.sections, c.node.NodeName) {
		return "", false
	}
	text = fmt.Sprintf("contiv.conf: no section for node %s", c.node.NodeName)
	if meant := similarNode(c.node.NodeName, c.sections); meant != "" {
		return fmt.Sprintf("%s; did you mean it by the section of %s?", text, meant), true
	}
	const most = 10
	listed, more := c.sections, ""
	if len(listed) > most {
		listed, more = listed[:most], fmt.Sprintf(" and %d more", len(c.sections)-most)
	}
	return fmt.Sprintf("%s; there are sections for %s%s", text, strings.Join(listed, ", "), more), false
}

// similarNode returns the section that was probably meant for the node. Nodes whose names differ only in a number or in their last letter
// are different nodes.
func similarNode(name string, sections []string) string {
	short := func(s string) string { s, _, _ = strings.Cut(s, "."); return s }
	for _, s := range sections {
		if strings.EqualFold(s, name) || strings.EqualFold(short(s), name) || strings.EqualFold(s, short(name)) {
			return s
		}
	}
	likely := slices.DeleteFunc(slices.Clone(sections), func(s string) bool {
		return withoutDigits(s) == withoutDigits(name) || s != "" && name != "" && s[:len(s)-1] == name[:len(name)-1]
	})
	meant := didyoumean.Closest(name, likely)
	if len(meant) > len(name)+2 { // a longer name with the same beginning belongs to another node
		return ""
	}
	return meant
}

func withoutDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, s)
}
