package intdataplane

import (
	"contiv.dev/vswitch/dataplane/linux/ifacemonitor"
	"contiv.dev/vswitch/dataplane/linux/routetable"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// The messages about the node's interfaces, and the desired state of a route.
type (
	ifaceState  = ifacemonitor.IfaceStateUpdate
	ifaceAddrs  = ifacemonitor.IfaceAddrsUpdate
	ifaceMTU    = ifacemonitor.IfaceMTUUpdate
	routeTarget = routetable.Target
)

// The operations of the programming layer that the managers need. table.Backend and routetable.Table implement them.

type chainSink interface {
	SetChains(f table.Family, l table.Layer, chains ...table.Chain)
	SetDispatch(f table.Family, l table.Layer, d table.Dispatch)
	DeleteChains(f table.Family, l table.Layer, names ...string)
}

type setSink interface {
	ReplaceSet(f table.Family, s table.Set, members []table.Member)
	ChangeSet(f table.Family, id string, add, remove []table.Member)
	DeleteSet(f table.Family, id string)
}

// routeSink takes the routes of one family. Each manager names its routes by classes.
type routeSink interface {
	SetRoutes(class string, targets []routeTarget)
	DeleteClass(class string)
}

// sysctlSink writes a kernel parameter unless it has the value already; path is relative to /proc/sys.
type sysctlSink interface {
	Ensure(path, value string) (wrote bool, err error)
}
