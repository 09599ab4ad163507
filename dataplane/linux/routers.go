package intdataplane

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/internal/nsdo"
)

const forwardIPv6 = "net/ipv6/conf/all/forwarding"

// keepRouters lets a node that is about to forward IPv6 keep what it has learned from router advertisements. A router ignores them, and
// deletes its default routes from them, on all links where accept_ra is not 2.
func (d *InternalDataplane) keepRouters() error {
	if now, err := d.parts.sysctls.Get(forwardIPv6); err == nil && now != "0" || d.parts.advertised == nil {
		return nil
	}
	links, err := d.parts.advertised()
	if err != nil {
		return fmt.Errorf("find links with routes from router advertisements: %w", err)
	}
	for _, link := range links {
		path := "net/ipv6/conf/" + link + "/accept_ra"
		if now, err := d.parts.sysctls.Get(path); err != nil || now != "1" {
			continue // gone, or its routes are not the kernel's
		}
		wrote, err := d.parts.sysctls.Ensure(path, "2")
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("keep the routes from router advertisements on %s: %w", link, err)
		case wrote:
			d.progress.writes++
			d.log.Info("the link accepts router advertisements although the node forwards IPv6", "link", link, "sysctl", path, "value", "2")
		}
	}
	return nil
}

// advertisedLinks returns the names of the links on which the kernel has routes from router advertisements.
func advertisedLinks(ns *nsdo.Namespace) (links []string, err error) {
	err = ns.Do(func() error {
		routes, err := os.ReadFile("/proc/thread-self/net/ipv6_route")
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a kernel without IPv6
		}
		links = linksOf(routes)
		return err
	})
	return links, err
}

// linksOf returns the links of routes from router advertisements. Each line of routes has the fields destination, its length, source, its
// length, gateway, metric, references, uses, flags and link.
func linksOf(routes []byte) (links []string) {
	for lines := bufio.NewScanner(bytes.NewReader(routes)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) != 10 || strings.HasPrefix(f[0], "fe80") || strings.HasPrefix(f[0], "ff") {
			continue
		}
		flags, err := strconv.ParseUint(f[8], 16, 32)
		if err == nil && flags&unix.RTF_ADDRCONF != 0 && !slices.Contains(links, f[9]) {
			links = append(links, f[9])
		}
	}
	return links
}
