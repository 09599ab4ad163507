package intdataplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/ifacemonitor"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/rules/rulestest"
	"contiv.dev/vswitch/dataplane/netlink/nettest"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/internal/nsdo"
)

// Proofs on a kernel: the links, routes, rules and calls of iptables after a driver with the field has run.

// kernelRig is a driver in a namespace with an uplink eth0 (192.0.2.1) and a workload's interface calia.
type kernelRig struct {
	t  *testing.T
	ns *nettest.NS
	d  *InternalDataplane
}

// onKernel creates the namespace; each proof has a separate one.
func onKernel(t *testing.T) *kernelRig {
	k := &kernelRig{t: t, ns: nettest.New(t)}
	k.ns.Veth("eth0", "eth0-peer")
	k.ns.Veth("calia", "calia-peer")
	k.ns.IP("addr add 192.0.2.1/24 dev eth0")
	k.ns.Set("net/ipv4/conf/all/rp_filter", "0")
	return k
}

// start starts a driver and waits for its first apply.
func (k *kernelRig) start(c Config, o Options) {
	k.t.Helper()
	k.begin(c, o)
	if err := k.flush(&proto.InSync{}); err != nil {
		k.t.Fatal(err)
	}
}

// begin starts a driver.
func (k *kernelRig) begin(c Config, o Options) {
	k.t.Helper()
	orElse(&c.RulesConfig.Hostname, "node1")
	o.NS = k.ns.Namespace
	var err error
	if k.d, err = New(c, o); err != nil {
		k.t.Fatal(err)
	}
	k.d.Start()
	k.t.Cleanup(func() { k.stop(k.d) })
}

func (k *kernelRig) stop(d *InternalDataplane) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := d.Stop(ctx); err != nil {
		k.t.Errorf("stop: %v", err)
	}
}

func (k *kernelRig) flush(msgs ...any) error {
	for _, msg := range msgs {
		if err := k.d.SendMessage(msg); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	return k.d.Flush(ctx)
}

// kernelRulesProofs returns the proofs of RulesConfig on a kernel.
func kernelRulesProofs() map[string]rulesProof {
	vxlan := func(set func(*rules.Config), want string) rulesProof {
		return rulesProof{Set: func(c *rules.Config) {
			c.VXLANEnabled = true
			set(c)
		}, Has: func(t *testing.T, c rules.Config) bool {
			k := onKernel(t)
			k.start(Config{RulesConfig: c}, Options{})
			if err := k.flush(ownVTEP); err != nil {
				t.Fatal(err)
			}
			return strings.Contains(k.ns.IP("-d link show contiv-vxlan"), want)
		}}
	}
	return map[string]rulesProof{
		"VXLANVNI": vxlan(func(c *rules.Config) { c.VXLANVNI = 77 }, "vxlan id 77 "),
		"VXLANMTU": vxlan(func(c *rules.Config) { c.VXLANMTU = 1300 }, "mtu 1300 "),
		"Backend": {Set: func(c *rules.Config) { c.Backend = rules.BackendIptables }, Has: func(t *testing.T, c rules.Config) bool {
			k := onKernel(t)
			k.start(Config{RulesConfig: c}, Options{})
			return strings.Contains(k.ns.Run("iptables-save -t filter"), ":cali-FORWARD ")
		}},
		"RouteProtocol": {Set: func(c *rules.Config) { c.RouteProtocol = 77 }, Has: func(t *testing.T, c rules.Config) bool {
			k := onKernel(t)
			k.start(Config{RulesConfig: c}, Options{})
			if err := k.flush(openProfile(), endpoint("a", "calia", 1)); err != nil {
				t.Fatal(err)
			}
			return strings.Contains(k.ns.IP("route show proto 77"), "10.65.0.1 dev calia")
		}},
	}
}

// kernelProofs returns the proofs of Config on a kernel.
func kernelProofs() map[string]proof {
	return map[string]proof{
		"IPIPMTU": {Set: func(c *Config) { c.IPIPMTU, c.RulesConfig.IPIPEnabled = 1300, true }, Has: func(t *testing.T, c Config) bool {
			k := onKernel(t)
			if k.ns.Try("ip link show tunl0") != nil { // a kernel without IPIP: the loopback gets its name
				k.ns.IP("link set lo down")
				k.ns.IP("link set lo name tunl0")
			}
			k.start(c, Options{})
			return within(10*time.Second, func() bool { return strings.Contains(k.ns.IP("link show tunl0"), "UP") }) &&
				strings.Contains(k.ns.IP("link show tunl0"), "mtu 1300 ")
		}},
		"NetlinkTimeout": {Set: func(c *Config) {
			c.NetlinkTimeout, c.IfaceMonitorConfig.ResyncInterval = 100*time.Millisecond, time.Hour // otherwise a resync would wait for its own timeout
		}, Has: func(t *testing.T, c Config) bool {
			k := onKernel(t)
			k.start(c, Options{RetryInterval: time.Hour})
			k.silence()
			began := time.Now()
			if err := k.flush(openProfile(), endpoint("a", "calia", 1)); err != nil { // the call times out, and is repeated with another socket
				t.Fatal(err)
			}
			took := time.Since(began)
			return took > 90*time.Millisecond && took < 8*time.Second
		}},
		"IfaceMonitorConfig": {Set: func(c *Config) {
			c.IfaceMonitorConfig = ifacemonitor.Config{InterfaceExcludes: []*regexp.Regexp{regexp.MustCompile("^eth0$")}}
		}, Has: func(t *testing.T, c Config) bool {
			k := onKernel(t)
			k.start(c, Options{})
			if err := k.d.SendMessage(hostEndpoint("h", "", expecting("192.0.2.1"))); err != nil {
				t.Fatal(err)
			}
			msg, err := k.d.RecvMessage()
			status, is := msg.(*proto.HostEndpointStatusUpdate)
			return err == nil && is && status.GetStatus().GetStatus() == "error" // no known interface has the address
		}},
	}
}

// silence makes the kernel's answers get lost on the netlink sockets that this process has in the namespace.
func (k *kernelRig) silence() {
	k.t.Helper()
	cookie := func(fd int) (uint64, error) { return unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE) }
	var own uint64
	err := k.ns.Do(func() error {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		own, err = cookie(fd)
		return errors.Join(err, unix.Close(fd))
	})
	entries, listErr := os.ReadDir("/proc/self/fd")
	if err := errors.Join(err, listErr); err != nil {
		k.t.Fatal(err)
	}
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	found := 0
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
		protocol, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
		if err != nil || domain != unix.AF_NETLINK || protocol != unix.NETLINK_ROUTE {
			continue // another descriptor, or one that was closed
		}
		if in, err := cookie(fd); err != nil || in != own {
			continue
		}
		if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]}); err != nil {
			k.t.Fatal(err)
		}
		found++
	}
	if found == 0 {
		k.t.Fatal("the driver has no netlink socket")
	}
}

// script logs the name of the namespace and the call, and calls the program. It starts no other process.
const script = `#!/bin/sh
ns=
for file in /run/netns/%s*; do
	[ "$file" -ef /proc/self/ns/net ] && ns=${file##*/}
done
echo "$ns ${0##*/} $* lock=$XTABLES_LOCKFILE" >>%s
exec %s "$@"
`

// tools puts programs before iptables' own ones in PATH which log their calls and then call those. It returns a function that returns the
// calls in a namespace.
func tools(t *testing.T) (calls func(k *kernelRig) []string) {
	dir := t.TempDir()
	log := filepath.Join(dir, "calls")
	for _, sbin := range filepath.SplitList(os.Getenv("PATH")) {
		all, err := filepath.Glob(filepath.Join(sbin, "ip*tables*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, program := range all {
			text := fmt.Sprintf(script, nettest.NamePrefix(), log, program)
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(program)), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func(k *kernelRig) (out []string) {
		text, err := os.ReadFile(log)
		if err != nil {
			k.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if call, is := strings.CutPrefix(line, k.ns.Name+" "); is {
				out = append(out, call)
			}
		}
		return out
	}
}

// iptablesProofs returns the proofs of fields for iptables.
func iptablesProofs(t *testing.T) map[string]proof {
	calls := tools(t)
	restores := func(set func(*Config), want string) proof {
		return proof{Set: func(c *Config) {
			c.RulesConfig.Backend = rules.BackendIptables
			set(c)
		}, Has: func(t *testing.T, c Config) bool {
			k := onKernel(t)
			k.start(c, Options{})
			for _, call := range calls(k) {
				if strings.Contains(call, "iptables") && strings.Contains(call, "-restore ") && strings.Contains(call, want) {
					return true
				}
			}
			return false
		}}
	}
	looks := func(k *kernelRig) (n int) {
		for _, call := range calls(k) {
			if strings.Contains(call, "-save ") {
				n++
			}
		}
		return n
	}
	lock := filepath.Join(t.TempDir(), "lock")
	return map[string]proof{
		"IptablesLockTimeout":       restores(func(c *Config) { c.IptablesLockTimeout = 7 * time.Second }, " --wait 7 "),
		"IptablesLockProbeInterval": restores(func(c *Config) { c.IptablesLockProbeInterval = 7 * time.Millisecond }, " --wait-interval 7000 "),
		"IptablesLockFilePath":      restores(func(c *Config) { c.IptablesLockFilePath = lock }, " lock="+lock+"\n"),
		"IptablesPostWriteCheckInterval": {Set: func(c *Config) {
			c.RulesConfig.Backend, c.IptablesPostWriteCheckInterval = rules.BackendIptables, time.Hour
		}, Has: func(t *testing.T, c Config) bool {
			k := onKernel(t)
			k.start(c, Options{})
			before := looks(k)
			return !within(5*time.Second, func() bool { return looks(k) > before }) // otherwise after a second
		}},
		"IptablesInsertMode": {Set: func(c *Config) {
			c.RulesConfig.Backend, c.IptablesInsertMode = rules.BackendIptables, "append"
		}, Has: func(t *testing.T, c Config) bool {
			k := onKernel(t)
			k.ns.Run("iptables -A FORWARD -s 203.0.113.0/24 -j ACCEPT")
			k.start(c, Options{})
			text := k.ns.Run("iptables-save -t filter")
			foreign, ours := strings.Index(text, "-A FORWARD -s 203.0.113.0/24"), strings.Index(text, "-A FORWARD -m comment")
			if ours < 0 {
				ours = strings.Index(text, "-j cali-FORWARD")
			}
			return foreign >= 0 && foreign < ours
		}},
	}
}

// kernelOptionProofs returns the proofs of options that concern the kernel.
func kernelOptionProofs() map[string]optionProof {
	return map[string]optionProof{
		"NS": {Set: func(o *Options) { o.NS = &nsdo.Namespace{} }, Has: func(t *testing.T, o Options) bool {
			k := onKernel(t)
			if o.NS != nil {
				o.NS = k.ns.Namespace
			}
			return k.refused(o, "2") && !k.refused(o, "0")
		}},
		"Backend": {Set: func(o *Options) { o.Backend = rulestest.New() }, Has: func(t *testing.T, o Options) bool {
			k := onKernel(t)
			k.start(Config{}, o)
			fake, is := o.Backend.(*rulestest.Fake)
			return is && len(fake.Dump()) > 0 && !strings.Contains(k.ns.Run("nft list tables"), "table")
		}},
		"RouteGrace": {Set: func(o *Options) { o.RouteGrace = 50 * time.Millisecond }, Has: func(t *testing.T, o Options) bool {
			k := onKernel(t)
			k.ns.IP("route add 10.65.9.9/32 dev calia proto 202 scope link") // of a workload of an earlier driver
			k.start(Config{}, o)
			return within(4*time.Second, func() bool { return !k.routeTo("10.65.9.9") })
		}},
	}
}

// routeTo reports whether the main table has a route to an IPv4 address of its own.
func (k *kernelRig) routeTo(a string) bool {
	k.t.Helper()
	var list []netlink.Route
	if err := k.ns.Do(func() (err error) {
		list, err = netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
		return err
	}); err != nil {
		k.t.Fatal(err)
	}
	return slices.ContainsFunc(list, func(r netlink.Route) bool { return r.Dst != nil && r.Dst.String() == a+"/32" })
}

// refused sets the reverse path check of the namespace, loose or not, and reports whether a driver refuses to start there.
func (k *kernelRig) refused(o Options, value string) bool {
	k.ns.Set("net/ipv4/conf/all/rp_filter", value)
	d, err := New(Config{RulesConfig: rules.Config{Hostname: "node1"}}, o)
	if err != nil {
		k.t.Fatal(err)
	}
	d.Start() // without InSync it writes nothing, in any namespace
	defer k.stop(d)
	return d.SendMessage(&proto.IPAMPoolRemove{Id: "x"}) != nil
}
