package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/poll"
)

// inventory lists existing objects by place: interfaces and rings of VPP, devices, routes and neighbours of the nodes, namespaces.
type inventory map[string][]string

// takeInventory lists the objects that pods and services create.
func (s *soak) takeInventory(ctx context.Context) (inventory, error) {
	inv := inventory{}
	names, err := os.ReadDir("/run/netns")
	if err != nil {
		return nil, err
	}
	for _, e := range names {
		if strings.HasPrefix(e.Name(), s.opts.name+"-") {
			inv["namespaces"] = append(inv["namespaces"], e.Name())
		}
	}
	for _, n := range s.Nodes {
		for what, args := range map[string]string{
			"devices": "-o -br link", "routes 4": "-o -4 route show table all", "routes 6": "-o -6 route show table all",
		} {
			out, err := n.Run(ctx, "ip", strings.Fields(args)...)
			if err != nil {
				return nil, err
			}
			inv.put(n.Name+" "+what, out, func(line string) string {
				if what == "devices" {
					return strings.Fields(line)[0]
				}
				return line
			})
		}
		if n.VPP == nil {
			continue
		}
		for what, command := range map[string]string{
			"VPP interfaces": "show hardware-interfaces brief", "VPP neighbours": "show ip neighbor",
		} {
			out, err := n.VPP.CLI(command)
			if err != nil {
				return nil, err
			}
			inv.put(n.Name+" "+what, out, func(line string) string { return objectName(what, line) })
		}
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", n.VPP.PID()))
		if err != nil {
			return nil, err
		}
		inv[n.Name+" VPP rings"] = rings(string(maps))
	}
	return inv, nil
}

// rings returns names for the mapped sockets in /proc/PID/maps, numbered: the AF_PACKET rings of a VPP.
func rings(maps string) (names []string) {
	for i := range strings.Count(maps, "socket:[") {
		names = append(names, fmt.Sprintf("ring %d", i+1))
	}
	return names
}

// objectName returns the object that a line of VPP describes, without the parts that change by themselves.
func objectName(what, line string) string {
	f := strings.Fields(line)
	switch {
	case strings.HasPrefix(line, " ") && what == "VPP interfaces", len(f) < 4:
		return ""
	case what == "VPP neighbours":
		if slices.Contains(f, "D") { // dynamic entries are added and removed by themselves: other nodes' addresses
			return ""
		}
		return f[1] + " " + f[len(f)-1]
	}
	return f[0]
}

// poolName matches a link that the agent keeps ready for a pod, or VPP's interface at its end. Pods use them up, and new ones get other
// names.
var poolName = regexp.MustCompile(`^(host-)?cv[hq][0-9a-f]{10}(@|$)`)

// put adds lines; lines without a name are left out. Links of the agent's warm pool are numbered, so that only their count is compared.
func (inv inventory) put(place, text string, name func(line string) string) {
	inv[place] = []string{}
	pool := 0
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n "); line == "" {
			continue
		}
		n := name(line)
		if poolName.MatchString(n) {
			pool++
			n = fmt.Sprintf("%d of the warm pool", pool)
		}
		if n != "" {
			inv[place] = append(inv[place], n)
		}
	}
	slices.Sort(inv[place])
}

// diff returns the differences from another inventory; "" if there are none.
func (inv inventory) diff(other inventory) string {
	var all []string
	for place, now := range other {
		before := inv[place]
		for _, name := range now {
			if !slices.Contains(before, name) {
				all = append(all, place+" has "+name)
			}
		}
		for _, name := range before {
			if !slices.Contains(now, name) {
				all = append(all, place+" lacks "+name)
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// cleanLimit bounds the time until all objects of pods and services are removed.
const cleanLimit = time.Minute

// checkLeftovers removes services and pods, and compares the inventory with that of the start. Then the agents compute everything from
// scratch, which must change nothing.
func (s *soak) checkLeftovers(ctx context.Context) {
	if err := s.removeServices(); err != nil {
		s.fault("service", "%v", err)
	}
	for _, p := range s.pods {
		if err := s.DeletePod(ctx, p.node, p.name, p.Pod); err != nil {
			s.fault("pod", "%v", err)
		}
	}
	limited, cancel := context.WithTimeout(ctx, cleanLimit)
	defer cancel()
	if err := poll.Until(limited, 200*time.Millisecond, func() error {
		now, err := s.takeInventory(ctx)
		if err != nil {
			return err
		}
		if diff := s.empty.diff(now); diff != "" {
			return errors.New(diff)
		}
		return nil
	}); err != nil {
		s.fault("left over", "%v", err)
	}
	for i, n := range s.Nodes {
		if err := s.resyncWritesNothing(ctx, n); err != nil {
			s.fault("resync", "node %d: %v", i+1, err)
		}
	}
}

func (s *soak) resyncWritesNothing(ctx context.Context, n *testbed.Node) error {
	metric := map[bool]string{true: "contiv_vpp_writes_total", false: "contiv_linux_writes_total"}[s.isVPP()]
	before, err := n.Metric(ctx, metric)
	if err != nil {
		return err
	}
	if _, err := n.Post(ctx, "/controller/resync"); err != nil {
		return err
	}
	after, err := n.Metric(ctx, metric)
	if err != nil {
		return err
	}
	if after != before {
		return fmt.Errorf("it wrote %.0f times", after-before)
	}
	return nil
}
