package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	"contiv.dev/vswitch/internal/etcdpki"
)

// sharedName is the name by which contiv-netctl identifies a certificate for all agents.
const sharedName = "contiv-agent"

// remoteREST returns the arguments with which agents serve REST to the other nodes: over TLS, with a
// token.
func (d *demo) remoteREST() (args []string, err error) {
	if d.dir, err = os.MkdirTemp("", d.name+"-rest-"); err != nil {
		return nil, err
	}
	ca, err := etcdpki.NewCA(d.name)
	if err != nil {
		return nil, err
	}
	cert, err := ca.Issue(etcdpki.Leaf{Name: d.name, Servers: []string{sharedName}})
	if err != nil {
		return nil, err
	}
	for file, data := range map[string][]byte{
		"ca.crt": ca.Cert, "tls.crt": append(cert.Cert, ca.Cert...), "tls.key": cert.Key, "token": []byte(rand.Text() + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(d.dir, file), data, 0o600); err != nil {
			return nil, err
		}
	}
	return []string{"--http=0.0.0.0:9999", "--http-cert=" + d.dir + "/tls.crt", "--http-key=" + d.dir + "/tls.key",
		"--http-token-file=" + d.dir + "/token"}, nil
}

// wait prints how to inspect the nodes, and waits until the demo is interrupted.
func (d *demo) wait(ctx context.Context) error {
	n := d.nodes[0]
	fmt.Printf("Paste this into a root shell:\n\n  netctl() { nsenter --net=%s %s --socket=%s \"$@\"; }\n\n", n.Path(),
		filepath.Join(d.bin, "contiv-netctl"), n.RESTSocket())
	fmt.Println("Then try: netctl status, netctl connectivity test, netctl trace a " + podName(len(d.pods)-1) + ", netctl top, netctl ui")
	<-ctx.Done()
	return nil
}
