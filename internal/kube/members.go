package kube

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// PodURLs returns the HTTPS URLs of a service's pods, ready or not: one for each pod. The service is written as NAMESPACE/NAME:PORT.
func (c *Client) PodURLs(ctx context.Context, service string) ([]string, error) {
	namespace, name, port, err := ParseService(service)
	if err != nil {
		return nil, err
	}
	all, err := c.Endpoints(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var urls []string
	for _, e := range all {
		if !seen[e.Pod] {
			seen[e.Pod] = true
			urls = append(urls, "https://"+netip.AddrPortFrom(e.Addr, port).String())
		}
	}
	slices.Sort(urls)
	return urls, nil
}

// ParseService parses NAMESPACE/NAME:PORT.
func ParseService(text string) (namespace, name string, port uint16, err error) {
	service, digits, _ := strings.Cut(text, ":")
	namespace, name, _ = strings.Cut(service, "/")
	number, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || namespace == "" || name == "" || number == 0 {
		return "", "", 0, fmt.Errorf("%q is not a service with a port; write it as NAMESPACE/NAME:PORT", text)
	}
	return namespace, name, uint16(number), nil
}
