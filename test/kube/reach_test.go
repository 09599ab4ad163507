package kube

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"contiv.dev/vswitch/test/testbed/netns"
)

// testPods checks that pods reach pods of their own node and of others, nodes reach pods, and pods reach nodes and addresses
// outside, in both families.
func testPods(w *world) {
	pods := w.webPods("mesh", 2)
	for _, from := range pods {
		for _, to := range pods {
			for _, ip := range to.ips() {
				w.answers(from.Metadata.Name, from.ns, hostPort(ip, webPort), to.Metadata.Name)
			}
		}
	}
	for _, n := range w.nodes {
		for _, to := range pods {
			for _, ip := range to.ips() {
				w.answers(n.name, n.host, hostPort(ip, webPort), to.Metadata.Name)
			}
		}
	}
	w.kubectlExec(pods[0], pods[len(pods)-1])
	w.outwards(pods)
}

// answers polls until a server answers with its name.
func (w *world) answers(client string, ns *netns.Namespace, server, want string) {
	w.t.Helper()
	w.within(10*time.Second, client+" reaches "+want+" at "+server, func() error {
		got, err := queryFrom(ns, server, "/hostname")
		if err == nil && got != want {
			err = fmt.Errorf("%s answers", got)
		}
		return err
	})
}

// kubectlExec does the same as a user would.
func (w *world) kubectlExec(from, to *client) {
	w.t.Helper()
	out := w.kubectl("exec", from.Metadata.Name, "--", "curl", "-s", "-m", "5", "http://"+hostPort(to.v4(), webPort)+"/hostname")
	if out != to.Metadata.Name {
		w.t.Errorf("curl in %s says %q instead of %s", from.Metadata.Name, out, to.Metadata.Name)
	}
	if out := w.kubectl("logs", to.Metadata.Name); !strings.Contains(out, "/hostname") {
		w.t.Errorf("kubectl logs %s does not mention the request: %s", to.Metadata.Name, out)
	}
}

// outwards checks that a server outside of the cluster receives the node's address, not the pod's, to which the server has
// no route.
func (w *world) outwards(pods []*client) {
	w.t.Helper()
	for _, at := range []string{"10.10.0.1", "fd00:10::1"} {
		l, err := net.Listen("tcp", net.JoinHostPort(at, "0"))
		w.must(err)
		srv := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			host, _, _ := net.SplitHostPort(r.RemoteAddr)
			_, _ = io.WriteString(rw, host)
		})}
		//lint:allow go: ends with the listener
		go func() { _ = srv.Serve(l) }()
		for _, p := range pods {
			n := w.node(p.Spec.NodeName)
			if (w.setup.reference() || w.onVPP(n)) && strings.Contains(at, ":") {
				continue // neither the reference nor VPP translates IPv6
			}
			sources := []string{n.ip(), n.ip6(), n.vppIP(), n.vppIP6()}
			w.within(10*time.Second, p.Metadata.Name+" reaches "+at, func() error {
				got, err := queryFrom(p.ns, l.Addr().String(), "/")
				if err == nil && !slices.Contains(sources, got) {
					err = fmt.Errorf("the server sees %s instead of the node's address, one of %v", got, sources)
				}
				return err
			})
		}
		_ = srv.Close()
	}
}

// testHostPort checks that portmap, chained after our plugin, forwards a port of the node to a pod.
func testHostPort(w *world) {
	const port = 18080
	pod := webPod("hostport", "hostport", w.nodes[0].name)
	container := pod["spec"].(object)["containers"].([]any)[0].(object)
	container["ports"] = []any{object{"containerPort": webPort, "hostPort": port}}
	w.create(pod)
	w.t.Cleanup(func() { w.deletePods("hostport") })
	w.readyPods("hostport", 1)
	other := w.webPods("hostport-client", 1)
	server := hostPort(w.nodes[0].ip(), port)
	w.answers("outside", nil, server, "hostport")
	w.answers("the other node", w.nodes[1].host, server, "hostport")
	for _, c := range other {
		w.answers(c.Metadata.Name, c.ns, server, "hostport")
	}
	w.deletePods("hostport")
	if _, err := net.DialTimeout("tcp", server, time.Second); err == nil {
		w.t.Error("the port is still open after the pod is gone")
	}
}
