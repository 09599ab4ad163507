package ui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/ui/fleet"
	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/test/testbed/browser"
)

// serve serves the page of a cluster.
func serve(t *testing.T, c *cluster, trace func(context.Context, TraceRequest) (any, error)) *Server {
	t.Helper()
	s, err := New(Config{Listen: "127.0.0.1:0", Open: c.open, Trace: trace, Version: "0.1.0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

var desk = browser.Screen{Width: 1280, Height: 900}

// TestPage: the views show a cluster without a fault, then one with faults, each with its cause.
func TestPage(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4)
	b := browser.Start(t)
	p := b.Open(serve(t, c, nil).URL(), desk)

	lookAtTopology(t, c, p)
	lookAtWorkloads(c, p)
	lookAtDrops(c, p)
	lookAtEvents(p)
	if list := p.Errors(); len(list) > 0 {
		t.Errorf("the page has errors: %q", list)
	}
	c.set(func() {
		if c.posts > 0 {
			t.Errorf("the agents got %d requests that are not GET", c.posts)
		}
	})
}

// lookAtTopology checks the drawing of a healthy cluster, then of one with faults: worker-4 stays down.
func lookAtTopology(t *testing.T, c *cluster, p *browser.Page) {
	t.Helper()
	p.Want("#state", "all healthy")
	p.Want("svg.topology", "worker-1", "worker-4", "vpp · 3 pods", "0.41 ms")
	p.Want(".checks", "4 of 4 ready", "packets get through")
	p.Want("svg.topology", "Mbit/s") // rates need the second answer
	if n := browser.Value[int](p, `document.querySelectorAll("svg .edge.good").length`); n != 6 {
		t.Errorf("%d good tunnels are drawn, want 6", n)
	}
	if at := browser.Value[string](p, "location.href"); strings.Contains(at, "key=") {
		t.Errorf("the secret is still in the address: %s", at)
	}
	p.Shot("topology")
	p.ClickText("table button.link", "worker-2")
	p.Want(".chosen-card", "worker-2", "VPP 25.10", "192.168.16.2/24")

	c.set(func() {
		c.nodes[0].silent["worker-3"] = true
		c.nodes[2].silent["worker-1"] = true
		c.nodes[3].down = true
		c.nodes[1].failed = 2
	})
	p.Want("#state", "problem")
	p.Want(".problems", "no reply through the overlay from worker-3", "no reply: the connection was closed", "2 values failed", "contiv-netctl dump --node worker-2")
	p.Want(".checks", "3 of 4 ready")
	p.Do(`document.querySelector('[data-key="tunnel/worker-1/worker-3"]').dispatchEvent(new MouseEvent("click", {bubbles: true}))`)
	p.Want(".chosen-card", "worker-1 – worker-3", "Packets of pods are lost", "worker-1 gets no reply from worker-3 (10.1.3.1) through the overlay since")
	p.Shot("topology-faults")
}

// lookAtWorkloads checks pods and services; worker-4 is up again.
func lookAtWorkloads(c *cluster, p *browser.Page) {
	p.ClickText("nav a", "Pods")
	p.Want("main", "shop/web-1", "10.1.1.2", "The pods of worker-4 are not shown: no reply: the connection was closed")
	c.set(func() { c.nodes[3].down = false })
	p.Want("tbody", "web-4")
	p.Type("#filter", "db-2")
	p.WantNot("tbody", "web-1")
	p.Want("tbody", "shop/db-2", "10.1.3.3")
	p.Type("#filter", "nothing")
	p.Want("main", "No pod matches", "Clear the filter")
	p.Do(`document.getElementById("filter").value = ""; document.getElementById("filter").dispatchEvent(new Event("input", {bubbles: true}))`)
	p.Shot("pods")
	p.ClickText(".tabs a", "Services")
	p.Want(".service", "shop/web", "10.96.0.20", "80/TCP", "node port 30080", "shop/web-3", "10.1.3.2:8080", "worker-3")
	c.set(func() { c.services[1].Ports[0].Backends = nil })
	p.Want(".service.bad", "shop/db", "no backend is ready for port 5432/TCP")
	p.Shot("services")
}

func lookAtDrops(c *cluster, p *browser.Page) {
	p.ClickText("nav a", "Drops")
	p.Want("main", "Nothing was dropped", "No counter rose in the last minute")
	c.set(func() {
		c.nodes[1].drops = []diag.DropCounter{{Where: "contiv-ip4-input", Reason: "denied by network policy", Count: 120, Means: "network policy does not allow the connection"},
			{Where: "ip4-input", Reason: "ip4 ttl <= 1", Count: 3, Means: "there is a routing loop, or a traceroute ran"}}
		c.nodes[0].drops = []diag.DropCounter{{Where: "contiv-ip4-input", Reason: "spoofed source", Count: 7, Means: "a pod sent from an address that is not its own"}}
	})
	c.set(func() {
		c.nodes[1].denied = []fleet.Denied{{Time: time.Now(), Count: 120, Direction: "ingress", Pod: "shop/db-1", Source: "10.1.1.4", SourcePod: "default/cache-0",
			Dest: "10.1.2.3", DestPod: "shop/db-1", Protocol: "TCP", Port: 5432, Policy: "shop/db-only-web", Because: "no rule of the policies that select the pod allows it"}}
	})
	p.Want(".denied", "default/cache-0", "shop/db-1", "TCP 5432", "shop/db-only-web", "no rule of the policies")
	p.Want("tr.rising", "denied by network policy", "+120", "worker-2", "network policy does not allow")
	p.Want("main", "3 counters rose in the last minute", "pod shop/db-1")
	p.Shot("drops")
}

func lookAtEvents(p *browser.Page) {
	p.ClickText("nav a", "Events")
	p.Want(".list", "Add Pod", "shop/batch-7", "no such file or directory")
	p.ClickText(".event", "") // the newest event
	p.Want(".detail", "Add Pod", "tap-shop-batch-7", "VPP: no such file or directory", "ipam", "10.1.1.19")
	p.Do(`[...document.querySelectorAll(".event")].find((e) => e.textContent.includes("worker-3 joined")).click()`)
	p.Want(".detail .diff", "forwarding entry", "vxlanBD 12:2b:00:00:00:03", "10.1.3.0/24 via 192.168.30.3, table 1")
	p.ClickText(".diff .line", "")
	p.Want(".value", "Now CONFIGURED", `"mtu": 1450`)
	p.Shot("events")
}

// TestPageWithoutAnswer: when the agent does not respond, and when the command has ended, the page shows the fix, and recovers.
func TestPageWithoutAnswer(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	c.set(func() { c.nodes[0].down = true })
	b := browser.Start(t)
	p := b.Open(serve(t, c, nil).URL(), desk)
	p.Want("#state", "no reply")
	p.Want("main", "The cluster does not respond", "127.0.0.1:"+c.port, "the connection was closed", "Check that this agent runs")
	p.Shot("no-answer")
	c.set(func() { c.nodes[0].down = false })
	p.Want("#state", "all healthy")
	c.set(func() { c.stale = "etcd does not respond; the nodes are those of the last update" })
	p.Want(".problems", "etcd does not respond", "check that etcd runs")
}

// TestPhone: on a phone nothing is wider than the screen, in each view, and in dark mode.
func TestPhone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	c.set(func() { c.nodes[0].silent["worker-2"] = true })
	b := browser.Start(t)
	p := b.Open(serve(t, c, nil).URL(), browser.Screen{Width: 390, Height: 844, Dark: true, Phone: true})
	for view, want := range map[string]string{
		"topology": "Checks", "workloads/pods": "shop/web-1", "workloads/services": "shop/web", "drops": "By reason", "events": "Add Pod", "events/worker-2/2": "TRANSACTION",
		"trace": "Open a saved trace",
	} {
		p.Do("location.hash = '#/" + view + "'")
		p.Want("main", want)
		if wide := browser.Value[int](p, "document.documentElement.scrollWidth"); wide > 390 {
			t.Errorf("%s is %d pixels wide on a screen of 390", view, wide)
		}
		p.Shot("phone-" + strings.ReplaceAll(view, "/", "-"))
	}
	p.Do("location.hash = '#/topology'")
	p.Want("svg.topology", "worker-3")
	noOverlaps(t, p)
	if dark := browser.Value[string](p, "getComputedStyle(document.body).backgroundColor"); dark != "rgb(13, 18, 25)" {
		t.Errorf("the background in the dark is %s", dark)
	}
}

// TestManyNodes: 50 nodes with long names, as in clouds, are drawn side by side, with all their texts inside, and the lists of pods and events
// stay inside of the screen.
func TestManyNodes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 50)
	c.set(func() {
		for i, n := range c.nodes {
			n.name = fmt.Sprintf("ip-10-128-%d-%d.eu-central-1.compute.internal", i, 200-i)
			for j := range n.pods {
				n.pods[j].Name = fmt.Sprintf("recommendation-service-with-a-long-name-7d9f8c6b5d-x%04d%d", i, j)
			}
		}
		c.nodes[7].silent[c.nodes[31].name] = true
		c.nodes[20].failed = 1
		c.nodes[33].down = true
	})
	b := browser.Start(t)
	p := b.Open(serve(t, c, nil).URL(), browser.Screen{Width: 1280, Height: 900, Dark: true})
	p.Want("svg.topology", "ip-10-128-49-")
	p.Want("#state", "problems")
	p.Want("svg.topology", "vpp · 3 pods")
	noOverlaps(t, p)
	if n := browser.Value[int](p, `new Set([...document.querySelectorAll("svg .node .name")].map((e) => e.textContent)).size`); n != 50 {
		t.Errorf("the drawing has %d different names of nodes, want 50", n)
	}
	p.Shot("many-nodes")
	for view, want := range map[string]string{"workloads/pods": "recommendation-service", "workloads/services": "shop/web", "events": "Add Pod"} {
		p.Do("location.hash = '#/" + view + "'")
		p.Want("main", want)
		if wide := browser.Value[int](p, "document.documentElement.scrollWidth"); wide > 1280 {
			t.Errorf("%s is %d pixels wide on a screen of 1280", view, wide)
		}
		p.Shot("many-" + strings.ReplaceAll(view, "/", "-"))
	}
}

// noOverlaps fails if two nodes of the drawing overlap, or if a text of a node leaves its box.
func noOverlaps(t *testing.T, p *browser.Page) {
	t.Helper()
	faults := browser.Value[[]string](p, `(() => {
		const nodes = [...document.querySelectorAll("svg .node")].map((g) => [g.getAttribute("data-key"), g.querySelector(".body").getBBox(), g]);
		const out = [];
		for (const [a, r, g] of nodes) {
			for (const [b, s] of nodes) {
				if (a < b && r.x < s.x + s.width && s.x < r.x + r.width && r.y < s.y + s.height && s.y < r.y + r.height) out.push(a + " overlaps " + b);
			}
			for (const text of g.querySelectorAll("text")) {
				const s = text.getBBox();
				if (s.x < r.x || s.x + s.width > r.x + r.width) out.push(a + ": " + text.textContent + " leaves the box");
			}
		}
		return out;
	})()`)
	for _, fault := range faults {
		t.Error(fault)
	}
}

// TestKeyboard: a node in the drawing can be reached and opened by the keyboard, and closed by Escape.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	b := browser.Start(t)
	p := b.Open(serve(t, c, nil).URL(), desk)
	p.Want("svg.topology", "worker-2")
	for range 20 {
		p.Press(kb.Tab)
		if browser.Value[string](p, `document.activeElement.getAttribute("data-key") || ""`) == "node/worker-2" {
			break
		}
	}
	p.Press(kb.Enter)
	p.Want(".chosen-card", "worker-2", "VPP 25.10")
	time.Sleep(3 * time.Second) // the page is drawn again meanwhile
	if at := browser.Value[string](p, `document.activeElement.getAttribute("data-key") || ""`); at != "node/worker-2" {
		t.Errorf("after the page was drawn again the focus is at %q", at)
	}
	p.Press(kb.Escape)
	p.WantNot("main", "VPP 25.10")
}

// TestSavedTrace: a report of contiv-netctl trace is drawn as a path; any other file is rejected with the reason.
func TestSavedTrace(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	p := b.Open(serve(t, newCluster(t, 2), nil).URL()+"", desk)
	p.Want("#state", "all healthy")
	p.ClickText("nav a", "Trace")
	p.Want("main", "contiv-netctl ui --allow-trace")
	p.Choose("#saved", "testdata/not-a-trace.json")
	p.Want(".note.bad", "This is not the output of contiv-netctl trace")
	p.Choose("#saved", "testdata/trace-lost.json")
	p.Want(".verdict.bad", "the packet was dropped on worker-2", "svc/shop/db")
	p.Want(".rail", "shop/web-1", "worker-1", "worker-2")
	p.Want(".lane.bad", "denied by network policy")
	p.Want(".translated", "10.96.0.21:5432", "10.1.2.3:5432")
	p.Shot("trace")
	if list := p.Errors(); len(list) > 0 {
		t.Errorf("the page has errors: %q", list)
	}
}

// TestTraceForm: the input is still there after a change of the view, and a trace that fails shows the reason.
func TestTraceForm(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	s := serve(t, newCluster(t, 1), func(_ context.Context, req TraceRequest) (any, error) {
		return nil, errors.New(req.From + " is not a connected pod")
	})
	p := b.Open(s.URL(), desk)
	p.Want("#state", "all healthy")
	p.ClickText("nav a", "Trace")
	p.Type("input[name=from]", "shop/gone")
	p.Type("input[name=to]", "shop/db-0")
	p.ClickText("nav a", "Drops")
	p.Want("main", "By reason")
	p.ClickText("nav a", "Trace")
	p.Click("button.primary")
	p.Want(".note.bad", "shop/gone is not a connected pod")
}
