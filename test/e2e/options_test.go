package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/poll"
)

func environment(v ...string) setup {
	return func(o *testbed.NodeOptions) { o.AgentEnv = append(o.AgentEnv, v...) }
}

// ended waits for the end of an agent that must not run, and returns its log.
func (r *rig) ended() string {
	r.t.Helper()
	for end := time.Now().Add(15 * time.Second); r.Agent.Running(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("the agent runs:\n%s", r.LogTail(20))
		}
	}
	return r.LogTail(20)
}

// TestRefusedAtStart checks that an invalid configuration ends the agent before it has claimed a node ID or programmed anything, and that
// the error describes the fix.
func TestRefusedAtStart(t *testing.T) {
	needs(t, linux)
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	garbage := file("garbage.pem", "no certificate")
	for name, tc := range map[string]struct {
		with setup
		want string
	}{
		"a network of the node": {config("ipamConfig: {podSubnetCIDR: 192.0.0.0/16}\n"),
			"ipamConfig.podSubnetCIDR: 192.0.0.0/16 overlaps with 192.0.2.0/24, the network of this node's interface eth0 (address 192.0.2.10)"},
		"a misspelt variable": {environment("CONTIV_ETCD_ENDPOINT=https://192.0.2.1:2379"),
			"environment variable CONTIV_ETCD_ENDPOINT is unknown; did you mean CONTIV_ETCD_ENDPOINTS?"},
		"controller.conf": {args("-controller-config=" + file("controller.conf", "delayRetri: 1s")),
			"delayRetri: unknown option; did you mean delayRetry?"},
		"REST address of another host":  {args("--http=192.0.2.99:9999"), "--http 192.0.2.99:9999 is not a loopback address"},
		"REST port is taken":            {args("--http=127.0.0.1:9123"), "--http: listen tcp 127.0.0.1:9123"},
		"REST certificate":              {args("--http-cert="+garbage, "--http-key="+garbage), "--http-cert and --http-key: "},
		"etcd without TLS":              {args("--etcd-endpoints=http://192.0.2.1:2379"), "--etcd-endpoints: "},
		"etcd's certificate":            {args("--etcd-endpoints=https://192.0.2.1:2379", "--etcd-ca="+garbage), "--etcd-ca: "},
		"relay without etcd":            {args("--kubernetes=relay"), "--kubernetes=relay needs the etcd"},
		"kubeconfig that is not there":  {args("--kubeconfig=/does/not/exist"), "/does/not/exist"},
		"log level":                     {args("--log-level=loud"), `--log-level "loud": use debug`},
		"filter":                        {args("--linux-backend=ebtables"), `--linux-backend "ebtables": use nft`},
		"networks of node ports":        {args("--nodeport-addresses=here"), "--nodeport-addresses: "},
		"contiv.conf that is not there": {args("--config=/does/not/exist"), "/does/not/exist"},
		"a NIC that no node can have":   {config("mainVPPInterface: {standAlone: true, defaultRoute: true}\n"), "mainVPPInterface.standAlone: is true"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			r := newNode(t, linux, tc.with)
			var taken net.Listener
			r.must(r.Do(func() (err error) { taken, err = net.Listen("tcp", "127.0.0.1:9123"); return err }))
			defer taken.Close()
			r.must(r.LaunchAgent(r.ctx))
			if log := r.ended(); !strings.Contains(log, tc.want) {
				t.Errorf("it says\n%s\nwant %s", log, tc.want)
			}
			if found, err := filepath.Glob(filepath.Join(r.Dir, "data", "etcd", "member", "wal", "*")); err != nil || len(found) > 0 && nothingClaimed(tc.want) {
				t.Errorf("it has made a database: %v %v", found, err)
			}
			if rules, err := r.Run(r.ctx, "nft", "list", "ruleset"); err != nil || strings.TrimSpace(rules) != "" {
				t.Errorf("it has programmed (%v):\n%s", err, rules)
			}
		})
	}
}

// nothingClaimed reports whether the agent ends before it creates its database: the kubeconfig is read later, when the (empty) database
// exists.
func nothingClaimed(want string) bool { return !strings.HasPrefix(want, "/does/not/exist") }

// TestEtcdIsNamed checks that the log names the etcd from which the node ID comes, and reports that no section of contiv.conf is for this
// node.
func TestEtcdIsNamed(t *testing.T) {
	t.Parallel()
	each(t, []mode{linux}, func(t *testing.T, m mode) {
		r := newRig(t, m, config("nodeConfig: [{nodeName: somebody-else}]\n"))
		log := r.LogTail(200)
		for _, want := range []string{"etcd: embedded", "contiv.conf: no section for node " + r.Name} {
			if !strings.Contains(log, want) {
				t.Errorf("the log has no %q:\n%s", want, log)
			}
		}
	})
}

// TestNetworkComesLater checks that a network conflict that appears while the agent runs is reported; pods keep working.
func TestNetworkComesLater(t *testing.T) {
	t.Parallel()
	each(t, []mode{linux}, func(t *testing.T, m mode) {
		r := newRig(t, m)
		pods := r.add("a", "b")
		_, err := r.Run(r.ctx, "ip", "addr", "add", "172.30.77.7/24", "dev", "eth0")
		r.must(err)
		want := "ipamConfig.vppHostSubnetCIDR: 172.30.0.0/16 (its default) overlaps with 172.30.77.0/24"
		r.must(poll.Until(r.ctx, 50*time.Millisecond, func() error {
			if log := r.LogTail(50); !strings.Contains(log, want) {
				return fmt.Errorf("the log has no %q", want)
			}
			return nil
		}))
		r.must(r.ring(5*time.Second, pods))
	})
}

// TestPacketTrace checks that, with enablePacketTrace, VPP traces the packets of pods, also after its restart; without it, nothing is
// traced.
func TestPacketTrace(t *testing.T) {
	t.Parallel()
	each(t, []mode{veth, tap}, func(t *testing.T, m mode) {
		matrix.Only(t, tap.name)
		r := newRig(t, m, config("enablePacketTrace: true\n"))
		pods := r.add("a", "b")
		traced := func() {
			t.Helper()
			r.within(30*time.Second, "VPP has traced a ping", func() error {
				if err := pods[0].PingOnce(r.ctx, pods[1].IPs[0].String(), 0); err != nil {
					return err
				}
				out, err := r.VPP.CLI("show trace max 50")
				if err == nil && !strings.Contains(out, "ICMP: "+pods[0].IPs[0].String()+" -> "+pods[1].IPs[0].String()) {
					err = fmt.Errorf("show trace has %.200s", out)
				}
				return err
			})
		}
		traced()
		r.VPP.Kill()
		r.must(r.VPP.Run(r.ctx))
		traced()
	})
	each(t, []mode{veth}, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.must(r.ring(5*time.Second, r.add("a", "b")))
		if out, err := r.VPP.CLI("show trace"); err != nil || !strings.Contains(out, "No packets in trace buffer") {
			t.Errorf("show trace: %v\n%.300s", err, out)
		}
	})
}

// TestReceiveMode checks that VPP's interfaces have the mode of interfaceRxMode; adaptive, which AF_PACKET does not support, is rejected by
// name.
func TestReceiveMode(t *testing.T) {
	// modes returns the receive modes of the interfaces in use: those of the pool are down, and are in interrupt mode in any case.
	modes := func(r *rig) string {
		state, err := r.VPP.CLI("show interface")
		r.must(err)
		placement, err := r.VPP.CLI("show interface rx-placement")
		r.must(err)
		var used []string
		for line := range strings.Lines(placement) {
			name, _, isQueue := strings.Cut(strings.TrimSpace(line), " queue ")
			if isQueue && regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(name)+` +\d+ +up `).MatchString(state) {
				used = append(used, line)
			}
		}
		return strings.Join(used, "")
	}
	for _, tc := range []struct {
		mode mode
		rx   string
	}{{tap, "adaptive"}, {tap, "polling"}, {veth, "polling"}, {veth, "interrupt"}} {
		t.Run(tc.mode.name+"-"+tc.rx, func(t *testing.T) {
			matrix.Only(t, "tap-adaptive")
			needs(t, tc.mode)
			r := newRig(t, tc.mode, config("interfaceRxMode: "+tc.rx+"\n"))
			pods := r.add("a", "b")
			r.must(r.ring(10*time.Second, pods))
			if out := modes(r); strings.Count(out, "("+tc.rx+")") != 3 { // for the pods and the link to the host
				t.Errorf("receive modes:\n%s", out)
			}
			r.restartsQuietly(pods)
		})
	}
	t.Run("veth-changed-to-polling", func(t *testing.T) {
		needs(t, veth)
		r := newRig(t, veth)
		pods := r.add("a", "b")
		r.must(r.ring(10*time.Second, pods))
		conf := "useTAPInterfaces: false\ninterfaceRxMode: polling\n"
		r.must(os.WriteFile(filepath.Join(r.Dir, "contiv.conf"), []byte(conf), 0o600))
		r.restart()
		r.within(20*time.Second, "nothing waits for interrupts any more", func() error {
			if out := modes(r); strings.Count(out, "(polling)") != 3 || strings.Contains(out, "(interrupt)") {
				return errors.New(out)
			}
			return nil
		})
		time.Sleep(time.Second) // a failure shows late
		r.must(r.ring(10*time.Second, pods))
		r.restartsQuietly(pods)
	})
	t.Run("veth-adaptive", func(t *testing.T) {
		needs(t, veth)
		r := newNode(t, veth, config("interfaceRxMode: adaptive\n"))
		r.must(r.LaunchAgent(r.ctx))
		want := "interfaceRxMode: adaptive is not possible for AF_PACKET interfaces, and pods' interfaces are (useTAPInterfaces is false"
		if log := r.ended(); !strings.Contains(log, want) {
			t.Errorf("it says\n%s\nwant %s", log, want)
		}
	})
}

// TestOffloadOptions checks that, without our plugin, a pod's kernel computes its checksums and sends no packet that is larger than the MTU;
// options for offloads in VPP are rejected by name.
func TestOffloadOptions(t *testing.T) {
	needs(t, tap)
	r := newRig(t, tap, config("tcpChecksumOffloadDisabled: true\nenableGSO: false\n"))
	pods := r.add("a", "b")
	r.must(r.ring(10*time.Second, pods))
	out, err := pods[0].Run(r.ctx, "ethtool", "-k", "eth0")
	r.must(err)
	for _, feature := range []string{"tx-checksumming", "tcp-segmentation-offload"} {
		if !strings.Contains(out, feature+": off") {
			t.Errorf("want %s: off in\n%.1200s", feature, out)
		}
	}
	for _, option := range []string{"enableGSO: true", "tcpChecksumOffloadDisabled: false"} {
		r := newNode(t, tap, config(option+"\n"))
		r.must(r.LaunchAgent(r.ctx))
		r.within(15*time.Second, option+" is refused", func() error {
			if log := r.LogTail(100); !strings.Contains(log, "enableGSO is true or tcpChecksumOffloadDisabled is false, but VPP runs without the contiv plugin") {
				return errors.New(log)
			}
			return nil
		})
	}
	r = newNode(t, tap, config("enableGSO: true\ntcpChecksumOffloadDisabled: true\n"))
	r.must(r.LaunchAgent(r.ctx))
	if log := r.ended(); !strings.Contains(log, "enableGSO: is true, but so is tcpChecksumOffloadDisabled") {
		t.Errorf("it says\n%s", log)
	}
}

// TestControllerConf checks that retries follow controller.conf: with the defaults the agent would give up after minutes. Disabled records
// are not made.
func TestControllerConf(t *testing.T) {
	t.Parallel()
	each(t, []mode{fake}, func(t *testing.T, m mode) {
		path := filepath.Join(t.TempDir(), "controller.conf")
		conf := "delayRetry: 50ms\nmaxRetryAttempts: 2\nenableExpBackoffRetry: false\ndelayAfterErrorHealing: 60s\n"
		if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
			t.Fatal(err)
		}
		r := newNode(t, m, args("--controller-config="+path), func(o *testbed.NodeOptions) {
			o.Config += "nodeConfig: [{nodeName: " + o.Name + ", mainVPPInterface: {interfaceName: GigabitEthernet0/8/0}}]\n"
		})
		r.must(r.LaunchAgent(r.ctx))
		r.within(5*time.Second, "the agent gives up", func() error {
			if log := r.LogTail(100); !strings.Contains(log, "gave up retrying") {
				return errors.New(log)
			}
			return nil
		})
	})
	each(t, []mode{linux}, func(t *testing.T, m mode) {
		path := filepath.Join(t.TempDir(), "controller.conf")
		if err := os.WriteFile(path, []byte("recordEventHistory: false\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		r := newRig(t, m, args("--controller-config="+path))
		if text, err := r.Get(r.ctx, "/controller/event-history"); err == nil && strings.Contains(text, "Resync") {
			t.Errorf("events are recorded: %.300s", text)
		}
	})
}
