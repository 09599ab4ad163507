package nodesync

import "contiv.dev/vswitch/internal/keyval"

// ProtoBroker is the result type of ClusterWideDB.NewBroker, for implementations outside this module. A broker of a database without
// revisions returns 0 for them.
type ProtoBroker = keyval.ProtoBroker
