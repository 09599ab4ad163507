// Package feed passes northbound values to a two-phase driver (dataplane/linux, dataplane/windows), with descriptors of the scheduler: the
// driver takes part in transactions, with their order, reverts, retries, history and dumps, like VPP.
//
// A value is the message that announces it (nb: contiv/driver/v1). The messages of a wave are sent to the driver as one batch with a flush
// marker at its end; the wave waits until the batch has been applied. The driver compares its state with the kernel and repairs it
// automatically. A dump reports only what the driver has received, which is nothing after a restart of the agent.
//
// The driver writes nothing before InSync. InSync is a value, too; its rank orders it after all other values of the first resync. Until then a
// batch counts as done when it has been sent.
//
// The endpoint of a workload derives an item, workload-up, which is present when the driver reports that the endpoint is up, or connected under
// rules that block more than requested. For a driver that reports no status, an applied endpoint counts as up (Config.NoStatus). Thus a CNI ADD
// ends only when the pod is really connected.
package feed
