// Package feed hands northbound values to a two-phase driver (dataplane/linux, dataplane/windows), as kinds of the scheduler: so the driver
// takes part in transactions, with their order, reverts, retries, history and dumps, like VPP does.
//
// A value is the message that announces it (nb: contiv/driver/v1). What a wave has for the driver goes to it as one batch with a flush
// marker at its end; the wave waits until the batch has been applied. The driver compares with the kernel and repairs it by itself; a dump
// reports only what the driver has received, which after a restart of the agent is nothing.
//
// The driver writes nothing before InSync. That is a value, too, whose rank puts it behind all others of the first resync; until then a
// batch counts as done when it has been sent.
//
// Behind the endpoint of a workload comes a derived item, workload-up, which is there when the driver reports that the endpoint is up, or
// connected under rules that block more than they were asked to. A driver that reports no status has said so by applying the endpoint
// (Config.NoStatus). A CNI ADD so ends when the pod really is connected, and not before.
package feed
