package diag

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	netlinkNetfilter = 12
	// traceGroup is the bit of NFNLGRP_NFTRACE, the group to which the kernel reports traced packets.
	traceGroup = 1 << (9 - 1)
)

// listener reports whether a process listens to traced packets, and how many bytes of them it has not read yet. The tool
// itself does not report this.
func listener(pid int) (listens bool, unread int, err error) {
	sockets, err := socketsOf(pid)
	if err != nil {
		return false, 0, err
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/netlink", pid))
	if err != nil {
		return false, 0, err
	}
	listens, unread = findListener(string(text), sockets)
	return listens, unread, nil
}

// findListener parses /proc/net/netlink: sk Eth Pid Groups Rmem Wmem Dump Locks Drops Inode.
func findListener(text string, sockets map[string]bool) (listens bool, unread int) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 10 || f[1] != strconv.Itoa(netlinkNetfilter) || !sockets[f[9]] {
			continue
		}
		groups, errGroups := strconv.ParseUint(f[3], 16, 32)
		bytes, errBytes := strconv.Atoi(f[4])
		if errGroups == nil && errBytes == nil && groups&traceGroup != 0 {
			return true, bytes
		}
	}
	return false, 0
}

// socketsOf returns the inodes of a process's sockets.
func socketsOf(pid int) (map[string]bool, error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, e := range entries {
		link, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // the descriptor was closed in the meantime
		}
		if inode, ok := strings.CutPrefix(link, "socket:["); ok {
			out[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return out, nil
}
