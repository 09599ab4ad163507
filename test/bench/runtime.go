package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// graphNode is a node of VPP's graph in `show runtime`.
type graphNode struct {
	name           string
	state          string
	calls, vectors int64
	clocks         float64 // per packet; per call if there were no packets
	share          float64 // fraction of all clocks
}

func (n graphNode) perCall() float64 { return float64(n.vectors) / float64(max(1, n.calls)) }

func (n graphNode) total() float64 {
	if n.vectors > 0 {
		return n.clocks * float64(n.vectors)
	}
	return n.clocks * float64(n.calls)
}

// runtimeStats are the nodes of one thread.
type runtimeStats []graphNode

// parseRuntime parses `show runtime` of a VPP without workers. A line is: name, state (of one or two words), calls, vectors,
// suspends, clocks, vectors per call.
func parseRuntime(text string) runtimeStats {
	var all runtimeStats
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 7 {
			continue
		}
		numbers := fields[len(fields)-5:]
		calls, err1 := strconv.ParseInt(numbers[0], 10, 64)
		vectors, err2 := strconv.ParseInt(numbers[1], 10, 64)
		clocks, err3 := strconv.ParseFloat(numbers[3], 64)
		if err1 != nil || err2 != nil || err3 != nil {
			continue // headings
		}
		all = append(all, graphNode{
			name: fields[0], state: strings.Join(fields[1:len(fields)-5], " "), calls: calls, vectors: vectors, clocks: clocks,
		})
	}
	return all
}

// costliest returns the n nodes that took most clocks.
func (s runtimeStats) costliest(n int) runtimeStats {
	sorted := slices.Clone(s)
	sum := 0.0
	for _, node := range sorted {
		sum += node.total()
	}
	for i := range sorted {
		sorted[i].share = sorted[i].total() / max(1, sum)
	}
	slices.SortFunc(sorted, func(a, b graphNode) int {
		return map[bool]int{true: -1, false: 1}[a.total() > b.total()]
	})
	return sorted[:min(n, len(sorted))]
}

// String returns a line for each node.
func (s runtimeStats) String() string {
	var b strings.Builder
	for _, n := range s {
		fmt.Fprintf(&b, "      %-36s %5.1f %% %12d packets %8.1f a call %8.0f clocks each\n", n.name, n.share*100, n.vectors,
			n.perCall(), n.clocks)
	}
	return b.String()
}

// graph returns the total clocks of the graph: all nodes that processed packets, without the nodes that generate packets,
// pass them to a driver (contiv-offload-output sends by the uplink's socket) or drop them.
func (s runtimeStats) graph() float64 {
	sum := 0.0
	for _, n := range s {
		driver := n.name == "pg-input" || strings.HasSuffix(n.name, "-tx") || n.name == "contiv-offload-output" || strings.HasSuffix(n.name, "-input") && n.state != "active"
		if n.vectors > 0 && !driver && n.name != "error-drop" && n.name != "drop" {
			sum += n.total()
		}
	}
	return sum
}

// sent returns the number of packets that reached interfaces to be sent.
func (s runtimeStats) sent() int64 {
	var sum int64
	for _, n := range s {
		if strings.HasSuffix(n.name, "-output") && n.name != "interface-output" && !strings.HasPrefix(n.name, "contiv-") {
			sum += n.vectors
		}
	}
	return sum
}
