package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/test/testbed"
)

// baseline is the state of a node before it has any pod.
type baseline struct {
	vpp   []string // tags of VPP's interfaces
	links []string // devices of the node's namespace
}

func (r *rig) takeBaseline() baseline {
	r.t.Helper()
	var b baseline
	for _, i := range r.vppInterfaces() {
		b.vpp = append(b.vpp, i.label())
	}
	for _, l := range r.links() {
		b.links = append(b.links, l.Name)
	}
	return b
}

// vppInterface is an interface of VPP.
type vppInterface struct {
	name, tag string
	up        bool
	mac       string
}

// label returns the tag, or the name if there is no tag.
func (i vppInterface) label() string {
	if i.tag == "" {
		return i.name
	}
	return i.tag
}

// pooled reports whether the interface belongs to the warm pool, without a pod; one that the pool is about to tag has only
// its name.
func (i vppInterface) pooled() bool {
	return strings.HasPrefix(i.tag, "contiv-pool:") || strings.HasPrefix(i.tag, "contiv-trash:") ||
		i.tag == "" && strings.HasPrefix(i.name, "host-cvh")
}

// vppInterfaces returns the interfaces of VPP, or of the agent's fake of it, without the agent.
func (r *rig) vppInterfaces() []vppInterface {
	r.t.Helper()
	if r.mode.linux {
		return nil
	}
	socket := filepath.Join(r.Dir, "run", "vpp-fake.sock")
	if r.VPP != nil {
		socket = r.VPP.Socket()
	}
	log := slog.New(slog.DiscardHandler)
	jobs := lifecycle.NewGroup(r.ctx, log)
	c := conn.New(conn.Config{Socket: socket, Client: "e2e"}, log)
	lane := c.Lane()
	c.Start(jobs)
	defer func() {
		c.Close()
		r.check(jobs.Stop(time.Minute))
	}()
	r.within(5*time.Second, "connect to VPP", func() error {
		if s := c.State(); !s.Connected() {
			return fmt.Errorf("%s: %w", s.Status, s.Err)
		}
		return nil
	})
	var list []vppInterface
	var failed error
	conn.Dump(lane, &interfaces.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)},
		func(d *interfaces.SwInterfaceDetails) {
			list = append(list, vppInterface{
				name: d.InterfaceName, tag: d.Tag, mac: d.L2Address.String(), up: d.Flags&interface_types.IF_STATUS_API_FLAG_ADMIN_UP != 0,
			})
		}, func(err error) { failed = err })
	lane.Flush(r.ctx)
	r.must(failed)
	return list
}

// link is a device in the output of ip.
type link struct {
	Name  string `json:"ifname"`
	Alias string `json:"ifalias"`
	Group string `json:"group"`
	MAC   string `json:"address"`
}

// pooled reports whether a device waits for a pod.
func (l link) pooled() bool {
	return l.Alias == "" && (strings.HasPrefix(l.Name, "cvq") || strings.HasPrefix(l.Name, "cvh")) ||
		strings.HasPrefix(l.Alias, "contiv-pool:") || l.Group != "" && l.Group != "default"
}

func (r *rig) links() []link {
	r.t.Helper()
	out, err := r.Run(r.ctx, "ip", "-j", "link")
	r.must(err)
	var list []link
	r.must(json.Unmarshal([]byte(out), &list))
	return list
}

// allocations returns the recorded addresses by container.
func (r *rig) allocations() map[string][]string {
	r.t.Helper()
	var report struct {
		Pods []struct {
			Container string
			IPs       []string
		}
	}
	r.must(r.GetJSON(r.ctx, "/contiv/v1/ipam/allocations", &report))
	all := map[string][]string{}
	for _, p := range report.Pods {
		all[p.Container] = p.IPs
	}
	return all
}

// onlyPods checks that the node has what these pods need and nothing else: on record, in VPP and in its namespace.
func (r *rig) onlyPods(pods []*testbed.Pod) {
	r.t.Helper()
	r.check(r.findOthers(pods))
}

func (r *rig) findOthers(pods []*testbed.Pod) error {
	r.t.Helper()
	var wrong []string
	bad := func(format string, a ...any) { wrong = append(wrong, fmt.Sprintf(format, a...)) }
	of := map[string]*testbed.Pod{}
	for _, p := range pods {
		of[p.ContainerID] = p
	}
	allocated := r.allocations()
	for id, ips := range allocated {
		if of[id] == nil {
			bad("address %v is leaked by %s", ips, id)
		} else if want := addrStrings(of[id].IPs); !slices.Equal(ips, want) {
			bad("%s has %v on record and was told %v", id, ips, want)
		}
	}
	for id := range of {
		if allocated[id] == nil {
			bad("%s has no address on record", id)
		}
	}
	owner := func(label string) bool {
		return slices.ContainsFunc(pods, func(p *testbed.Pod) bool { return strings.HasSuffix(label, "-"+p.ContainerID) })
	}
	owned := 0
	for _, i := range r.vppInterfaces() {
		switch {
		case owner(i.tag):
			owned++
			if !i.up {
				bad("interface %s (%s) is down", i.name, i.tag)
			}
		case !slices.Contains(r.base.vpp, i.label()) && !i.pooled():
			bad("interface %s (tag %q) is left in VPP", i.name, i.tag)
		}
	}
	if owned != len(pods) && !r.mode.linux {
		bad("VPP has %d interfaces for %d pods", owned, len(pods))
	}
	for _, l := range r.links() {
		if !slices.Contains(r.base.links, l.Name) && !owner(l.Alias) && !l.pooled() {
			bad("device %s (alias %q) is left in the node", l.Name, l.Alias)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s", strings.Join(wrong, "\n"))
	}
	return nil
}

func addrStrings(addrs []netip.Addr) []string {
	out := make([]string, len(addrs))
	for i, a := range addrs {
		out[i] = a.String()
	}
	return out
}

// executed returns all operations that the scheduler has carried out since the agent started.
func (r *rig) executed() []string {
	r.t.Helper()
	var records []txn.Record
	r.must(r.GetJSON(r.ctx, "/scheduler/txn-history?format=json", &records))
	var ops []string
	for _, rec := range records {
		for _, op := range rec.Executed {
			// The Linux driver is a part of the agent, so it receives its input at each start.
			if strings.HasPrefix(op.Key, "config/contiv/driver/") || strings.HasPrefix(op.Key, "contiv/driver/") {
				continue
			}
			ops = append(ops, fmt.Sprintf("%s: %s", rec.Description, op.String()))
		}
	}
	return ops
}

func (r *rig) writes() float64 {
	r.t.Helper()
	metric := "contiv_vpp_writes_total"
	if r.mode.linux {
		metric = "contiv_linux_writes_total"
	}
	n, err := r.Metric(r.ctx, metric)
	r.must(err)
	return n
}

// requests returns the agent's requests to VPP since it started.
func (r *rig) requests() string {
	r.t.Helper()
	body, err := r.Get(r.ctx, "/metrics")
	r.must(err)
	var out strings.Builder
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "contiv_vpp_requests_total{") || strings.HasPrefix(line, "contiv_vpp_warm_pool{") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// poolFull waits until the warm pool has its full size: it takes a while to make an interface, and then waits four times as
// long.
func (r *rig) poolFull() {
	r.t.Helper()
	if r.mode.linux || r.mode.tap {
		return
	}
	r.within(time.Minute, "the warm pool is full", func() error {
		body, err := r.Get(r.ctx, "/metrics")
		if err != nil {
			return err
		}
		state := map[string]string{}
		for line := range strings.Lines(body) {
			if rest, ok := strings.CutPrefix(line, "contiv_vpp_warm_pool{state=\""); ok {
				name, n, _ := strings.Cut(rest, "\"} ")
				state[name] = strings.TrimSpace(n)
			}
		}
		if len(state) == 0 {
			return nil // the agent keeps no pool with interfaceRxMode: polling
		}
		if len(state) != 2 || state["ready"] != state["wanted"] {
			return fmt.Errorf("the pool has %v", state)
		}
		return nil
	})
}

// quiet waits until the agent has stopped writing to VPP.
func (r *rig) quiet() {
	r.t.Helper()
	r.poolFull()
	last, since := r.writes(), time.Now()
	r.within(20*time.Second, "nothing is written to VPP", func() error {
		if n := r.writes(); n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) < 1500*time.Millisecond {
			return errors.New("something is still written")
		}
		return nil
	})
}

// identity returns the properties that must not change during the life of a pod.
func (r *rig) identity(p *testbed.Pod) string {
	r.t.Helper()
	out, err := p.Run(r.ctx, "ip", "-j", "addr", "show", "eth0")
	r.must(err)
	var list []struct {
		MAC   string `json:"address"`
		Addrs []struct {
			Local string `json:"local"`
			Scope string `json:"scope"`
		} `json:"addr_info"`
	}
	r.must(json.Unmarshal([]byte(out), &list))
	id := list[0].MAC
	for _, a := range list[0].Addrs {
		if a.Scope == "global" {
			id += " " + a.Local
		}
	}
	return id
}
