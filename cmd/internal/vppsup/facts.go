package vppsup

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The modes of choosing hugepages.
const (
	HugepagesAuto = "auto" // use hugepages if there are enough
	HugepagesOn   = "on"
	HugepagesOff  = "off"
)

// hugepageDir is the directory in which the kernel reports pages of 2 MB.
const hugepageDir = "sys/kernel/mm/hugepages/hugepages-2048kB"

const hugepageBytes = 2 << 20

// FreeHugepages returns the free hugepages of the node in bytes. root is "/", except in tests.
func FreeHugepages(root string) int64 {
	free, err := readInt(filepath.Join(root, hugepageDir, "free_hugepages"))
	if err != nil {
		return 0
	}
	return free * hugepageBytes
}

// ownHugepages returns how many bytes of the node's free hugepages this process may use.
func ownHugepages(root string) int64 {
	bytes := FreeHugepages(root)
	// A container without hugepages among its resources may use none; the file with the limit depends on the cgroup version.
	for _, limit := range []string{"sys/fs/cgroup/hugetlb.2MB.max", "sys/fs/cgroup/hugetlb/hugetlb.2MB.limit_in_bytes"} {
		if n, err := readInt(filepath.Join(root, limit)); err == nil {
			bytes = min(bytes, n)
		}
	}
	return bytes
}

// numaNodes returns the number of NUMA nodes: VPP allocates its buffers once for each.
func numaNodes(root string) int64 {
	nodes, err := filepath.Glob(filepath.Join(root, "sys/devices/system/node/node[0-9]*"))
	if err != nil || len(nodes) == 0 {
		return 1
	}
	return int64(len(nodes))
}

// chooseHugepages reports whether the buffers use hugepages.
func chooseHugepages(mode, root string, s Settings) (bool, error) {
	need, have := numaNodes(root)*s.BufferMemory(), ownHugepages(root)
	switch mode {
	case HugepagesOff:
		return false, nil
	case HugepagesAuto:
		return have >= need, nil
	case HugepagesOn:
		if have < need {
			return false, fmt.Errorf("--hugepages on: %d buffers need %d MB of hugepages, this container may take %d MB; "+
				"set vm.nr_hugepages on the node and hugepages-2Mi among the container's resources, or configure fewer buffers",
				s.Buffers, need>>20, have>>20)
		}
		return true, nil
	}
	return false, fmt.Errorf("--hugepages %q: use on, off or auto", mode)
}

// spareMemory is the memory that VPP needs beside heap and buffers: its code, statistics, shared memory of the API, rings of interfaces.
const spareMemory = 512 << 20

// shortOfMemory returns why the kernel would kill VPP when VPP uses all of its configured memory; empty: it would not.
func shortOfMemory(root string, s Settings) string {
	need := int64(s.HeapMB)<<20 + spareMemory
	if !s.Hugepages {
		need += numaNodes(root) * s.BufferMemory()
	}
	for _, file := range []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if limit, err := readInt(filepath.Join(root, file)); err == nil && limit < need {
			return fmt.Sprintf("this container may take %d MB, VPP will need up to %d MB; raise vpp.resources.limits.memory, or lower "+
				"vpp.heapMB or vpp.buffers", limit>>20, need>>20)
		}
	}
	return ""
}

// readInt reads a number; "max" is the largest int64.
func readInt(path string) (int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	text := strings.TrimSpace(string(data))
	if text == "max" {
		return math.MaxInt64, nil
	}
	return strconv.ParseInt(text, 10, 64)
}
