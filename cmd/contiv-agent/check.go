package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	maxNodeName   = 253 // of Kubernetes
	maxSocketPath = 107 // of sockaddr_un
)

// defaultNodeName is what kubelet calls the node by default.
func defaultNodeName() (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("host name: %w; set --node-name", err)
	}
	return strings.ToLower(strings.TrimSpace(name)), nil
}

// check finds what would only show when half of the agent is there.
func (o *options) check() error {
	return errors.Join(checkNodeName(o.nodeName), checkSocket("cni-socket", o.cniSocket),
		checkSocket("run-dir", filepath.Join(o.runDir, restSocket)), o.checkPlatform())
}

// checkNodeName: the name is part of keys and of paths.
func checkNodeName(name string) error {
	alnum := func(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
	ok := name != "" && len(name) <= maxNodeName && alnum(name[0]) && alnum(name[len(name)-1])
	for i := range len(name) {
		ok = ok && (alnum(name[i]) || strings.IndexByte("-._", name[i]) >= 0)
	}
	if !ok {
		return fmt.Errorf("--node-name %q: use the name that Kubernetes has for the node: up to %d letters, digits, '-', '.', '_', "+
			"with a letter or digit at both ends", name, maxNodeName)
	}
	return nil
}

func checkSocket(flag, path string) error {
	if !filepath.IsAbs(path) || len(path) > maxSocketPath || strings.ContainsRune(path, 0) {
		return fmt.Errorf("--%s: socket %q: must be an absolute path of at most %d bytes", flag, path, maxSocketPath)
	}
	return nil
}
