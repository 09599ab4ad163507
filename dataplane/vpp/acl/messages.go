package acl

import (
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/vlib"
)

// Messages returns all requests that the descriptors of this package send.
func Messages() []api.Message {
	return []api.Message{
		&acl.ACLAddReplace{}, &acl.ACLDel{}, &acl.ACLDump{}, &acl.ACLInterfaceListDump{}, &acl.ACLInterfaceSetACLList{},
		&acl.ACLPluginGetConnTableMaxEntries{}, &vlib.ShowThreads{},
	}
}
