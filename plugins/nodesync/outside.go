package nodesync

import "contiv.dev/vswitch/internal/keyval"

// ProtoBroker is what ClusterWideDB.NewBroker returns, for implementations outside of this module. A broker of a database without
// revisions returns 0 for them.
type ProtoBroker = keyval.ProtoBroker
