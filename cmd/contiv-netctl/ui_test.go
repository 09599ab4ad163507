//go:build linux

package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/browser"
	"contiv.dev/vswitch/test/testbed/whoami"
)

// TestUI: the page of real agents, in a browser: topology, pods, services, events and a trace; then a node that is cut off, with its cause.
func TestUI(t *testing.T) {
	t.Parallel()
	for _, dataplane := range []string{"linux", "vpp"} {
		t.Run(dataplane, func(t *testing.T) {
			t.Parallel()
			b := browser.Start(t)
			w, api := withAPI(t, dataplane)
			w.endpoints(api, w.service("both", 15, nil), w.b, w.c)
			w.endpoints(api, w.service("none", 13, nil))
			w.endpoints(api, w.service("far", 11, nil), w.c)
			for _, pod := range []*testbed.Pod{w.b, w.c} {
				server, err := whoami.Serve(pod.Namespace, pod.Name, 8080)
				w.must(err)
				t.Cleanup(server.Close)
			}
			w.until(true, []string{"services"}, "both", "none")
			p := b.Open(w.servePage("--allow-trace"), browser.Screen{Width: 1280, Height: 900})
			w.tour(p)
			w.traceOnPage(p)
			w.topServices()
			w.cutOnPage(p)
			if list := p.Errors(); len(list) > 0 {
				t.Errorf("the page has errors: %q", list)
			}
		})
	}
}

// servePage runs contiv-netctl ui on the first node and returns an address by which the test's browser reaches it, like ssh -L.
func (w *world) servePage(args ...string) string {
	w.t.Helper()
	n := w.Nodes[0]
	ctx, cancel := context.WithCancel(w.ctx)
	cmd := n.Command(ctx, filepath.Join(binDir, "contiv-netctl"), append([]string{"--socket=" + n.RESTSocket(), "ui"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	w.must(err)
	w.t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	w.must(err)
	page, err := url.Parse(strings.TrimSpace(strings.TrimPrefix(line, "Open ")))
	w.must(err)
	page.Host = w.forward(page.Host)
	return page.String()
}

// forward listens on the machine and passes connections on to an address on the first node.
func (w *world) forward(address string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	w.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				var far net.Conn
				if err := w.Nodes[0].Do(func() (err error) { far, err = net.Dial("tcp", address); return err }); err != nil {
					return
				}
				defer far.Close()
				go func() { _, _ = io.Copy(far, c) }() // ends with either connection
				_, _ = io.Copy(c, far)
			}()
		}
	}()
	return l.Addr().String()
}

func (w *world) tour(p *browser.Page) {
	first, second := w.Nodes[0].Name, w.Nodes[1].Name
	p.Want("#state", "all healthy")
	p.Want("svg.topology", first, second, "2 pods", "ms")
	p.Want(".checks", "2 of 2 ready", "packets get through", "3 connected")
	p.Want("table", "bit/s")
	p.ClickText("nav a", "Pods")
	p.Want("tbody", "default/a", "default/c", w.c.IPs[0].String(), second, "bit/s")
	p.ClickText(".tabs a", "Services")
	p.Want(".service", "default/both", "10.96.0.15", "default/b", w.c.IPs[0].String()+":8080")
	p.Want(".service.bad", "default/none", "no backend is ready for port 80/TCP")
	p.ClickText("nav a", "Drops")
	p.Want("main", "By reason")
	p.ClickText("nav a", "Events")
	p.Want(".list", "Add Pod", "default/b")
	p.Do(`[...document.querySelectorAll(".event")].find((e) => e.textContent.includes("default/a")).click()`)
	p.Want(".detail .diff", "interface", "a")
	p.ClickText(".diff .line", "")
	p.Want(".value", "Now CONFIGURED")
	p.Shot("real-events")
}

func (w *world) traceOnPage(p *browser.Page) {
	p.ClickText("nav a", "Trace")
	p.Type("input[name=from]", "default/a")
	p.Type("input[name=to]", "default/c")
	p.Click("button.primary")
	p.Want(".verdict.good", "delivered, reply received")
	p.Want(".sides", w.Nodes[0].Name, w.Nodes[1].Name, "pod default/c")
	p.ShotFull("real-trace")
	file := filepath.Join(w.dir, "trace.json")
	w.must(os.WriteFile(file, []byte(w.stdout("trace", "a", "svc/both", "-o", "json")), 0o600))
	p.Choose("#saved", file)
	p.Want(".verdict", "svc/default/both")
	p.Want("main", "translated", "became")
}

// cutOnPage checks that a node whose link is cut is shown with its cause, and so is the trace, and that both recover.
func (w *world) cutOnPage(p *browser.Page) {
	w.must(w.Cut(w.ctx, 1))
	p.ClickText("nav a", "Topology")
	p.Want("#state", "problem")
	p.Want(".problems", "no reply through the overlay from "+w.Nodes[1].Name)
	p.Want("svg .edge.bad", "✗")
	p.Do(`document.querySelector(".edge").dispatchEvent(new MouseEvent("click", {bubbles: true}))`)
	p.Want(".chosen-card", "Packets of pods are lost", w.Nodes[0].Name+" gets no reply from "+w.Nodes[1].Name)
	p.Shot("real-fault")
	p.ClickText("nav a", "Trace")
	p.Do(`document.querySelector("[data-act=forget]").click()`)
	p.Click("button.primary")
	p.Want(".verdict.bad", "lost between the nodes")
	p.Want(".wire.bad", "✗")
	p.Shot("real-trace-lost")
	w.must(w.Mend(w.ctx, 1))
	p.ClickText("nav a", "Topology")
	p.Want("#state", "all healthy")
}
