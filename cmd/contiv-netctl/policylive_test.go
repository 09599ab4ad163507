//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/poll"
)

// TestPolicyTry: policy try queries both nodes, names the pods, ports and open connections that a policy would change, and applies nothing.
// When the policy is applied, it has the announced effect.
func TestPolicyTry(t *testing.T) {
	t.Parallel()
	for _, dataplane := range []string{"linux", iptables, "vpp"} {
		t.Run(dataplane, func(t *testing.T) {
			matrix.Only(t, "linux")
			t.Parallel()
			w, api := withAPI(t, dataplane)
			w.putAddresses(api)
			np := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ports"}}
			w.put(api, np, &np.Spec, `{podSelector: {}, ingress: [{ports: [{port: 5000}, {port: 5001}]}]}`) // VPP tracks the connections of pods with policies
			for _, to := range []string{"default/b", "default/c"} {
				w.until(false, []string{"policy", "why", "default/a", to, "--port", "80"}, to+"  deny")
			}
			var stays, ends []*echo
			for name, to := range map[string]*testbed.Pod{"b": w.b, "c": w.c} {
				for _, addr := range to.IPs {
					stays = append(stays, w.echo(name, to, netip.AddrPortFrom(addr, 5000)))
					ends = append(ends, w.echo(name, to, netip.AddrPortFrom(addr, 5001)))
				}
			}
			const spec = `{podSelector: {}, ingress: [{ports: [{port: 5000}, {port: 5002}]}]}`
			w.tried(spec, ends)
			for _, c := range slices.Concat(stays, ends) {
				if err := c.answers(); err != nil {
					t.Errorf("after a policy was tried, the connection to %s: %v", c.server, err)
				}
			}
			w.put(api, np, &np.Spec, spec)
			for _, c := range ends {
				if err := poll.Until(w.ctx, 100*time.Millisecond, c.cut); err != nil {
					t.Errorf("the connection to %s was said to end: %v", c.server, err)
				}
			}
			for _, c := range stays {
				if err := c.answers(); err != nil {
					t.Errorf("the connection to %s was not said to end: %v", c.server, err)
				}
			}
			w.want(true, w.tryFile(spec), "default/ports selects 3 pods; 0 changes, 0 open connections end. Nothing was applied.")
			w.want(false, w.tryFile(`{podSelectors: {}}`), "podSelectors")
		})
	}
}

// tryFile returns the command that tries a policy in the place of default/ports.
func (w *world) tryFile(spec string, more ...string) []string {
	w.t.Helper()
	file := filepath.Join(w.dir, "policy.yaml")
	text := "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: ports, namespace: default}\nspec: " + spec + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return append([]string{"policy", "try", "-f", file}, more...)
}

// tried checks the output for the policy: for each pod, port 5001 is closed to all and port 5002 opened, and the connections end.
func (w *world) tried(spec string, ends []*echo) {
	w.t.Helper()
	var out triedPolicy
	text := w.want(true, w.tryFile(spec, "-o", "json"))
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		w.t.Fatalf("%v in %s", err, text)
	}
	if want := []string{"default/a", "default/b", "default/c"}; !slices.Equal(out.Selects, want) || out.Unknown != "" || out.More {
		w.t.Errorf("selects %v, want %v; unknown %q, more %t", out.Selects, want, out.Unknown, out.More)
	}
	for _, pod := range out.Selects {
		var got []string
		for _, c := range out.Changes {
			if c.Pod == pod {
				got = append(got, fmt.Sprint(c.Direction, c.Ports, c.Before, " ", c.After, len(c.Peers) > 0))
			}
		}
		slices.Sort(got)
		if want := []string{"ingress[tcp 5001]allowed deniedtrue", "ingress[tcp 5002]denied allowedtrue"}; !slices.Equal(got, want) {
			w.t.Errorf("%s: %q, want %q", pod, got, want)
		}
	}
	for _, c := range ends {
		want := triedConnection{Protocol: "TCP", Client: c.client.String(), Server: c.server.String(), From: "default/a", To: "default/" + c.pod}
		if !slices.Contains(out.Connections, want) {
			w.t.Errorf("%+v is missing in %+v", want, out.Connections)
		}
	}
	if len(out.Connections) != len(ends) {
		w.t.Errorf("%d connections would end, want %d: %+v", len(out.Connections), len(ends), out.Connections)
	}
	w.want(true, w.tryFile(spec), "POD", "allowed -> denied", "open connection ends",
		fmt.Sprintf("default/ports selects 3 pods; %d changes, %d open connections end. Nothing was applied.", len(out.Changes), len(ends)))
}

// echo is a connection from a to a pod that answers each line.
type echo struct {
	net.Conn
	pod            string
	client, server netip.AddrPort
}

func (w *world) echo(name string, to *testbed.Pod, server netip.AddrPort) *echo {
	w.t.Helper()
	e := &echo{pod: name, server: server}
	var l net.Listener
	err := to.Namespace.Do(func() (err error) {
		l, err = net.Listen("tcp", e.server.String())
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	var work sync.WaitGroup
	work.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		defer stop()
		_, _ = io.Copy(c, c) // until one of the connections is closed
	})
	w.t.Cleanup(func() {
		cancel()
		_ = l.Close()
		work.Wait()
	})
	err = poll.Until(w.ctx, 50*time.Millisecond, func() error {
		return w.a.Namespace.Do(func() (err error) {
			e.Conn, err = net.DialTimeout("tcp", e.server.String(), time.Second)
			return err
		})
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = e.Close() })
	e.client = netip.MustParseAddrPort(e.LocalAddr().String())
	if err := e.answers(); err != nil {
		w.t.Fatal(err)
	}
	return e
}

// answers sends a line and waits for its echo.
func (e *echo) answers() error {
	const line = "hello\n"
	if err := e.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := e.Write([]byte(line)); err != nil {
		return err
	}
	buf := make([]byte, len(line))
	_, err := e.Read(buf)
	return err
}

// cut returns an error if a line is answered.
func (e *echo) cut() error {
	if err := e.SetDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		return nil // closed
	}
	if _, err := e.Write([]byte("x\n")); err != nil {
		return nil
	}
	if _, err := e.Read(make([]byte, 2)); err != nil {
		return nil
	}
	return errors.New("it still answers")
}
