package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"go.fd.io/govpp/adapter/socketclient"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/core"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

const (
	policySetID    = 7
	aclInterfaces  = 100
	aclMembers     = 1000
	memberOverhead = 64 // maximum overhead of a member in bytes
)

// policyVPP is a VPP with our plugin, without an agent.
type policyVPP struct {
	*vpptest.VPP
	conn *core.Connection
	api  contiv.RPCService
}

func newPolicyVPP(ctx context.Context) (*policyVPP, error) {
	v, err := vpptest.Launch(ctx, vpptest.Options{HeapMB: 1024, Plugin: true})
	if err != nil {
		return nil, err
	}
	c, err := core.Connect(socketclient.NewVppClient(v.Socket()))
	if err != nil {
		v.Stop()
		return nil, err
	}
	return &policyVPP{v, c, contiv.NewServiceClient(c)}, nil
}

func (v *policyVPP) close() {
	v.conn.Disconnect()
	v.Stop()
}

func (v *policyVPP) cli(format string, args ...any) (string, error) {
	out, err := v.CLI(fmt.Sprintf(format, args...))
	if err == nil && strings.Contains(out, "unknown input") {
		err = errors.New(out)
	}
	return out, err
}

// policyMembers adds members to a set by the scheduler, and by requests alone; and changes one member of an ACL.
func policyMembers(ctx context.Context, e *env) error {
	if !e.vpp {
		fmt.Println("   left out: there is no VPP")
		return nil
	}
	v, err := newPolicyVPP(ctx)
	if err != nil {
		return err
	}
	defer v.close()
	raw, err := v.conn.NewStream(ctx, core.WithRequestSize(workloadWindow), core.WithReplySize(workloadWindow))
	if err != nil {
		return err
	}
	defer raw.Close()
	set := &vpp_contiv.IPSet{Id: policySetID, Name: "scheduler", Kind: vpp_contiv.IPSet_NETWORKS}
	sched, err := newWorkloadScheduler(ctx, v.Socket(), &workload{base: []txn.KV{{Key: nb.ContivIPSetKey(policySetID), Value: set}}})
	if err != nil {
		return err
	}
	defer sched.close() // its resync has removed all other sets
	if _, err := v.api.ContivSetAddDel(ctx, &contiv.ContivSetAddDel{IsAdd: true, ID: 1, Name: "raw", Kind: contiv.CONTIV_SET_API_NETWORKS}); err != nil {
		return err
	}
	var scheduled, pipelined []time.Duration
	for round := range workloadRounds {
		for _, add := range []bool{true, false} {
			begin := time.Now()
			if err := memberTxn(ctx, sched, add); err != nil {
				return err
			}
			middle := time.Now()
			if err := rawMembers(raw, add); err != nil {
				return err
			}
			if add {
				scheduled, pipelined = append(scheduled, middle.Sub(begin)), append(pipelined, time.Since(middle))
			}
		}
		if round == 0 {
			if err := v.memberBytes(ctx, e, raw); err != nil {
				return err
			}
		}
	}
	e.ratio("10 000 members into VPP: scheduler to raw pipelined (aim <= 1.2)", milliseconds("scheduler", median(scheduled)),
		milliseconds("raw GoVPP, pipelined", median(pipelined)))
	return v.aclMember(ctx, e, median(scheduled)/routeCount)
}

func memberTxn(ctx context.Context, sched *workloadScheduler, add bool) error {
	t := &txn.Txn{Values: make([]txn.KV, routeCount)}
	for i := range t.Values {
		dst := routeDst(i)
		t.Values[i].Key = nb.ContivIPSetMemberKey(policySetID, dst.String(), 0, 0)
		if add {
			t.Values[i].Value = &vpp_contiv.IPSetMember{Set: policySetID, Prefix: dst.String()}
		}
	}
	_, err := sched.s.Commit(ctx, t)
	return err
}

// rawMembers makes the same changes by requests, of which a window is in flight.
func rawMembers(s api.Stream, add bool) error {
	receive := func() error {
		m, err := s.RecvMsg()
		if err != nil {
			return err
		}
		if rep, ok := m.(*contiv.ContivSetMemberAddDelReply); !ok || rep.Retval != 0 {
			return fmt.Errorf("VPP replied with %v", m)
		}
		return nil
	}
	for i := range routeCount + workloadWindow {
		if i >= workloadWindow {
			if err := receive(); err != nil {
				return err
			}
		}
		if i < routeCount {
			if err := s.SendMsg(&contiv.ContivSetMemberAddDel{IsAdd: add, SetID: 1, Prefix: vppPrefix(routeDst(i))}); err != nil {
				return err
			}
		}
	}
	return nil
}

func vppPrefix(p netip.Prefix) ip_types.Prefix {
	return ip_types.Prefix{Address: ip_types.NewAddress(p.Addr().AsSlice()), Len: uint8(p.Bits())}
}

// aclMember changes one address of an ACL that is on many interfaces, as policies implemented by ACLs require.
func (v *policyVPP) aclMember(ctx context.Context, e *env, ours time.Duration) error {
	acls := acl.NewServiceClient(v.conn)
	index := ^uint32(0)
	put := func(more int) error {
		rep, err := acls.ACLAddReplace(ctx, &acl.ACLAddReplace{ACLIndex: index, Tag: "bench", Count: aclMembers, R: aclRules(aclMembers, more, acl_types.ACL_ACTION_API_PERMIT)})
		if err == nil {
			index = rep.ACLIndex
		}
		return err
	}
	if err := put(0); err != nil {
		return err
	}
	for i := range aclInterfaces {
		out, err := v.cli("create loopback interface instance %d", i+1)
		if err != nil {
			return err
		}
		sw, err := v.index(strings.TrimSpace(out))
		if err != nil {
			return err
		}
		if _, err := acls.ACLInterfaceSetACLList(ctx, &acl.ACLInterfaceSetACLList{SwIfIndex: sw, Count: 1, Acls: []uint32{index}}); err != nil {
			return err
		}
	}
	var took []time.Duration
	for i := range 9 {
		begin := time.Now()
		if err := put(i + 1); err != nil {
			return err
		}
		took = append(took, time.Since(begin))
	}
	e.ratio(fmt.Sprintf("one member: ACL of %d on %d interfaces to ours (aim >= 100)", aclMembers, aclInterfaces), milliseconds("ACL", median(took)),
		milliseconds("member", ours))
	return nil
}

func (v *policyVPP) index(name string) (interface_types.InterfaceIndex, error) {
	out, err := v.cli("show interface %s", name)
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			var n uint32
			_, err := fmt.Sscan(f[1], &n)
			return interface_types.InterfaceIndex(n), err
		}
	}
	return 0, errors.Join(err, fmt.Errorf("there is no interface %s", name))
}

// aclRules returns n rules for sources other than the senders.
func aclRules(n, first int, action acl_types.ACLAction) (list []acl_types.ACLRule) {
	any4 := ip_types.Prefix{Address: ip_types.NewAddress(netip.IPv4Unspecified().AsSlice())}
	for i := range n {
		list = append(list, acl_types.ACLRule{IsPermit: action, SrcPrefix: vppPrefix(routeDst(first + i)), DstPrefix: any4, SrcportOrIcmptypeLast: 65535,
			DstportOrIcmpcodeLast: 65535})
	}
	return list
}

// memberBytes measures the memory of members in VPP.
func (v *policyVPP) memberBytes(ctx context.Context, e *env, raw api.Stream) error {
	used := func() (float64, error) { return residentBytes(v.PID()) }
	const many = 50
	before, err := used()
	if err != nil {
		return err
	}
	for i := range many { // the same members in many sets: 500 000
		id := uint64(100 + i)
		if _, err := v.api.ContivSetAddDel(ctx, &contiv.ContivSetAddDel{IsAdd: true, ID: id, Name: "many", Kind: contiv.CONTIV_SET_API_NETWORKS}); err != nil {
			return err
		}
		for j := range routeCount {
			if err := raw.SendMsg(&contiv.ContivSetMemberAddDel{IsAdd: true, SetID: id, Prefix: vppPrefix(routeDst(j))}); err != nil {
				return err
			}
			if _, err := raw.RecvMsg(); err != nil {
				return err
			}
		}
	}
	after, err := used()
	if err != nil {
		return err
	}
	each := (after - before) / (many * routeCount)
	fmt.Printf("   VPP: %.1f bytes per member\n", each)
	e.ratio("VPP's bytes per member to 64 (aim <= 1)", bar{name: "bytes per member", value: each}, bar{name: "aim", value: memberOverhead})
	return nil
}

// residentBytes returns the memory of a process that is in use: the plugin has its own memory, outside of VPP's
// heap.
func residentBytes(pid int) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if rest, found := strings.CutPrefix(line, "VmRSS:"); found {
			var kilobytes float64
			_, err := fmt.Sscan(rest, &kilobytes)
			return kilobytes * 1024, err
		}
	}
	return 0, fmt.Errorf("process %d has no resident memory", pid)
}
