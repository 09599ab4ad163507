package main

import (
	"fmt"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// feature is a feature on an interface of VPP.
type feature struct{ ifc, arc, name string }

// translation reports whether the feature translates addresses or is a dependency of one that does.
func (f feature) translation() bool {
	ip := slices.Contains([]string{"ip4-unicast", "ip6-unicast", "ip4-output", "ip6-output"}, f.arc)
	return ip && slices.ContainsFunc([]string{"nat", "cnat", "pnat", "ip4-sv-reassembly"}, func(start string) bool {
		return strings.HasPrefix(f.name, start)
	})
}

// parseFeatures parses `show interface features`: lines with an arc and a colon, and below, indented, its features.
func parseFeatures(ifc, text string) (all []feature) {
	arc := ""
	for line := range strings.Lines(text) {
		name := strings.TrimSpace(line)
		switch {
		case strings.HasSuffix(name, ":"):
			arc = strings.TrimSuffix(name, ":")
		case name != "" && line[0] == ' ':
			all = append(all, feature{ifc, arc, strings.Fields(name)[0]})
		}
	}
	return all
}

// takeTranslationOff removes the features that translate from all interfaces. No configuration of a node has this
// effect.
func takeTranslationOff(v *vpptest.VPP) error {
	list, err := v.CLI("show interface")
	if err != nil {
		return err
	}
	taken := 0
	for line := range strings.Lines(list) {
		if strings.TrimSpace(line) == "" || line[0] == ' ' || strings.Contains(line, "Name ") {
			continue
		}
		ifc := strings.Fields(line)[0]
		text, err := v.CLI("show interface features " + ifc)
		if err != nil {
			return err
		}
		for _, f := range parseFeatures(ifc, text) {
			if !f.translation() {
				continue
			}
			out, err := v.CLI(fmt.Sprintf("set interface feature %s %s arc %s disable", f.ifc, f.name, f.arc))
			if err != nil || strings.TrimSpace(out) != "" {
				return fmt.Errorf("take %s off %s: %w %s", f.name, f.ifc, err, out)
			}
			taken++
		}
	}
	if taken == 0 {
		return fmt.Errorf("there is no translation to take off:\n%s", list)
	}
	return nil
}
