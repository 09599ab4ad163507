package acl

import (
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/vlib"

	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

const (
	// aclSession is the number of bytes that VPP 25.10 allocates for a session of an ACL.
	aclSession = 128
	// aclMemory is the limit of the memory for the sessions of ACLs: what VPP allocates without workers by default.
	aclMemory = 64 << 20
)

// aclRoom determines whether VPP has enough memory for ACLs. When the first ACL is put on an interface VPP allocates memory for the
// maximum number of sessions, for each of its threads, and crashes if there is not enough. Our ACLs have no sessions. If there is
// not enough memory, no ACL is created and addresses that need an ACL are not served; but that is not an error of the ACL, because
// then no pod could be added.
func (k *descriptors) aclRoom(done func(error)) {
	var sessions, threads uint64
	both := kit.Join(2, func(err error) {
		need := sessions * threads * aclSession
		if k.acl.noRoom = err == nil && need > aclMemory; k.acl.noRoom {
			k.Log.Warn("ACLs are disabled, because VPP would allocate memory for their sessions and crash if it has too little; addresses with "+
				"loadBalancerSourceRanges are not served; add \"acl-plugin { connection count max 1024 }\" to VPP's startup.conf",
				"memoryMB", need>>20, "threads", threads)
		}
		done(err)
	})
	conn.Call(k.Lane, &acl.ACLPluginGetConnTableMaxEntries{}, func(r *acl.ACLPluginGetConnTableMaxEntriesReply, err error) {
		if err == nil {
			sessions = r.ConnTableMaxEntries
		}
		both(err)
	})
	conn.Call(k.Lane, &vlib.ShowThreads{}, func(r *vlib.ShowThreadsReply, err error) {
		if err == nil {
			threads = uint64(r.Count)
		}
		both(err)
	})
}
