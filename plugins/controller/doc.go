// Package controller is the event loop, the heart of the agent. Everything that happens is an event (package api); events
// are handled strictly one after another; the plugins are the handlers, and each event gives rise to at most one transaction
// of northbound values (package txn), which the handlers fill in turn and the dataplane applies.
//
// The package has two halves. The core (core.go, dispatch.go, transaction.go, external.go, healing.go) is a state machine:
// begin(event) calls the handlers and returns the transaction, finish(outcome of the commit) returns what is next. It has no
// goroutine and no clock. The driver (loop.go, queue.go) is the one goroutine that takes events out of the queues, carries
// transactions to the dataplane, and sleeps until the core wants to be asked again. README.md has the picture.
//
// # The caller's duties
//
// Whoever puts the agent together:
//
//  1. calls New, hands the Controller to plugins as api.EventLoop and api.ConfigRetriever, and calls Start with the plugins
//     in the order in which they are to see events;
//  2. calls Close before it stops the lifecycle group and closes the dataplane, so that plugins can handle Shutdown;
//  3. publishes Ready and Healthy as the readiness and the liveness of the agent (never of VPP);
//  4. calls DataplaneReconnected whenever what is configured in the dataplane may have been lost.
//
// Whoever pushes events:
//
//  1. makes them pointers, gives update events all of api.UpdateEvent, and expects Done in the loop's goroutine: it must
//     neither block nor wait for another event;
//  2. pushes a DBResync before anything can happen, and KubeStateChange events in the order of the changes. A DBResync has
//     in it all changes that were pushed before it. Changes from before the very first DBResync are replayed after it, so
//     a watcher that reads a snapshot and then follows from there pushes none;
//  3. after ErrQueueFull for a KubeStateChange, pushes a DBResync as soon as there is room: the change is lost;
//  4. uses PushFollowUp(cause, event) inside a handler, never PushEvent with a blocking event: nobody inside the loop can
//     wait. PushEvent cannot tell who calls it (that is not read from the runtime); it would give up after half a minute.
//
// Whoever applies transactions takes a *txn.Error as the way to report values that failed; any other error means that the
// transaction was not looked at, which is why it is healed even if the event ignores errors.
//
// Handlers:
//
//  1. do not block and do no I/O; slow work is started as a job and comes back as an event;
//  2. answer true for resync events in HandlesEvent: what is not put in a resync is not desired any more;
//  3. put the complete configuration in Resync without relying on follow-ups, since verification looks at just that;
//  4. do not keep the KubeStateData that Resync is given, which the controller goes on to change, and do not change values
//     that they have put;
//  5. cope with resyncCount == 1 more than once: a start-up resync that has failed is repeated;
//  6. return api.AbortEventError when going on makes no sense for this event, api.FatalError when it makes none for the
//     agent. A panic counts as an ordinary error.
//
// # What failure leads to
//
// RevertOnFailure undoes all: Revert of each handler that was called, the last one first and the one that failed included;
// the dataplane undoes its part; follow-ups pushed by the event are dropped with ErrCauseReverted. BestEffort goes on with
// the other handlers, commits, and joins the errors. A handler that fails in a resync keeps the configuration that it had,
// rather than losing it; in the start-up resync, where there is none to keep, nothing is committed.
//
// Values that failed and are retried by the dataplane are nobody else's business. What BestEffortIgnoreErrors could not remove,
// and nobody retries, is removed by a downstream resync, with backoff, while the node stays ready. Whatever else went wrong is
// healed by a
// full resync after DelayAfterErrorHealing; a healing that fails makes the node unready and is repeated with backoff until
// one succeeds. Before a start-up resync is repeated, the changes of the cluster's state that wait are made part of it: the removal
// of an object of which it has failed is such a change. After a FatalError updates are refused until a full resync (from the database or POST /controller/resync)
// succeeds; nothing ever stops VPP or ends the process.
//
// # Goroutines and ownership
//
// PushEvent, PushFollowUp, GetConfig, DataplaneReconnected, Resync, EventHistory, Ready and Healthy may be called from
// anywhere. Records of the history are never changed once they are published.
package controller
