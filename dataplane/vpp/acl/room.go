package acl

import (
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/vlib"

	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

const (
	// aclSession is how many bytes VPP 25.10 takes for a session of an ACL.
	aclSession = 128
	// aclMemory is how much memory VPP may take for the sessions of ACLs: as much as VPP takes without workers by default.
	aclMemory = 64 << 20
)

// aclRoom finds out whether VPP has room for ACLs. When the first one is put on an interface it takes memory for all the sessions
// that there may ever be, for each of its threads, and it dies if there is not as much. Ours have no sessions. Without room nothing
// is done, and what an ACL should guard is not served; but that is no error of the ACL's, or no pod could be added.
func (k *kinds) aclRoom(done func(error)) {
	var sessions, threads uint64
	both := kit.Join(2, func(err error) {
		need := sessions * threads * aclSession
		if k.acl.noRoom = err == nil && need > aclMemory; k.acl.noRoom {
			k.Log.Warn("no ACLs: VPP would take memory for their sessions, and die if it has not as much; addresses with "+
				"loadBalancerSourceRanges are not served; put \"acl-plugin { connection count max 1024 }\" into VPP's startup.conf",
				"MB", need>>20, "threads", threads)
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
