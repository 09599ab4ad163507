package hostports

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	linux_nodeports "contiv.dev/vswitch/dataplane/nb/linux/nodeports"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/internal/lifecycle"
)

// host is a fake nft with our tables, by family.
type host struct {
	mu     sync.Mutex
	tables map[string]string
	writes int
	fail   error
}

// with runs f while no other goroutine uses the tables.
func (h *host) with(f func()) {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func (h *host) run(_ context.Context, script string, args ...string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fail != nil {
		return "", h.fail
	}
	if args[0] == "-f" {
		words := strings.Fields(script)
		name := words[1] + " " + words[2]
		delete(h.tables, name)
		if strings.Count(script, "table ") > 2 {
			h.tables[name] = script
		}
		h.writes++
		return "", nil
	}
	listing, ok := h.tables[args[3]+" "+args[4]]
	if !ok {
		return "", errors.New("Error: No such file or directory")
	}
	return listing, nil
}

func nodePorts(ports ...uint32) *linux_nodeports.NodePorts {
	v := &linux_nodeports.NodePorts{Addresses: []string{"10.99.0.1"}, To: "172.30.1.1", Device: "vpp1"}
	for _, p := range ports {
		v.Ports = append(v.Ports, &linux_nodeports.NodePorts_Port{Port: p})
	}
	return v
}

// agent is a scheduler with only this descriptor.
type agent struct {
	t      *testing.T
	tables *Tables
	s      *scheduler.Scheduler
}

func newAgent(t *testing.T, nft NFT) *agent { return newAgentWith(t, nft, nil) }

// newAgentWith returns an agent; if iptables is set, its host has no nft.
func newAgentWith(t *testing.T, nft NFT, iptables IPTables) *agent {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	jobs := lifecycle.NewGroup(t.Context(), log)
	a := &agent{t: t, tables: New(nft, iptables, log), s: scheduler.New(scheduler.Config{Jobs: jobs}, log)}
	if err := errors.Join(a.tables.Register(a.s), a.s.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.s.Close()
		if err := jobs.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	return a
}

func (a *agent) commit(kind txn.Kind, list ...proto.Message) error {
	a.t.Helper()
	var values []txn.KV
	for _, v := range list {
		key, err := nb.Key(v)
		if err != nil {
			a.t.Fatal(err)
		}
		values = append(values, txn.KV{Key: key, Value: v})
	}
	_, err := a.s.Commit(a.t.Context(), &txn.Txn{Kind: kind, Values: values, NoRetry: true})
	return err
}

func (a *agent) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// TestTables tests that a table is written only when it changes, that a new agent finds it, and that a resync repairs and removes it.
func TestTables(t *testing.T) {
	h := &host{tables: map[string]string{}}
	a := newAgent(t, h.run)
	writes := func(what string, want int) {
		t.Helper()
		if h.writes != want {
			t.Errorf("%s: %d writes, want %d", what, h.writes, want)
		}
		h.writes = 0
	}
	a.must(a.commit(txn.FullResync, nodePorts(30001, 30080)))
	if !strings.Contains(h.tables["ip contiv-nodeports"], "{ tcp . 30001, tcp . 30080 }") {
		t.Errorf("%v", h.tables)
	}
	writes("first", 1)
	a.must(a.commit(txn.FullResync, nodePorts(30001, 30080)))
	writes("nothing new", 0)
	a = newAgent(t, h.run)
	a.must(a.commit(txn.FullResync, nodePorts(30001, 30080)))
	writes("a new agent", 0)
	a.must(a.commit(txn.Update, nodePorts(30001)))
	writes("a port less", 1)
	h.tables["ip contiv-nodeports"] = strings.ReplaceAll(h.tables["ip contiv-nodeports"], "tcp . 30001", "")
	a.must(a.commit(txn.FullResync, nodePorts(30001)))
	writes("changed by another program", 1)
	delete(h.tables, "ip contiv-nodeports")
	a.must(a.commit(txn.FullResync, nodePorts(30001)))
	writes("deleted by another program", 1)
	h.tables["ip6 contiv-nodeports"] = "of a former agent"
	a.must(a.commit(txn.FullResync))
	writes("nothing is wanted", 2)
	if len(h.tables) > 0 {
		t.Errorf("left: %v", h.tables)
	}
	h.fail = errors.New("there is no nft")
	if err := a.commit(txn.Update, nodePorts(30001)); err == nil || !strings.Contains(err.Error(), "install nft") {
		t.Errorf("without nft: %v", err)
	}
}

// TestInvalid tests that values that would change the meaning of the script do not reach nft.
func TestInvalid(t *testing.T) {
	for field, change := range map[string]func(v *linux_nodeports.NodePorts){
		"to":        func(v *linux_nodeports.NodePorts) { v.To = "172.30.1.1; flush ruleset" },
		"addresses": func(v *linux_nodeports.NodePorts) { v.Addresses = []string{"fd00::1"} },
		"ports":     func(v *linux_nodeports.NodePorts) { v.Ports[0].Port = 70000 },
		"device":    func(v *linux_nodeports.NodePorts) { v.Device = "a\" accept" },
	} {
		v := nodePorts(30001)
		change(v)
		if err := validatePorts(v); err == nil || !strings.HasPrefix(err.Error(), field+":") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestWatch tests that a change of a table by another program is reported once per check of the table, and that nothing else is reported.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{tables: map[string]string{}}
		tables := New(h.run, nil, slog.New(slog.DiscardHandler))
		script, _ := portsScript(nodePorts(30001))
		write := func(ctx context.Context) error {
			_, err := h.run(ctx, script, "-f", "-")
			return err
		}
		if err := tables.write(table{linux_nodeports.Family_IPV4, portsTable}, write); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var reported []string
		go func() { _ = tables.Watch(ctx, func(why string) { reported = append(reported, why) }) }()
		time.Sleep(3*lookEvery + time.Second)
		h.with(func() {
			if len(reported) > 0 {
				t.Errorf("told for nothing: %q", reported)
			}
			delete(h.tables, "ip contiv-nodeports")
		})
		time.Sleep(lookEvery)
		h.with(func() {
			if len(reported) != 1 || !strings.Contains(reported[0], "ip contiv-nodeports") {
				t.Errorf("told %q", reported)
			}
		})
		cancel()
		synctest.Wait()
	})
}
