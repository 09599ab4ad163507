// Package controller is the event loop of the agent. Every change or request is an event (package api). Events are handled strictly one
// after another. The plugins are the handlers, and each event makes at most one transaction of northbound values (package txn), which the
// handlers fill one after another and the dataplane applies.
//
// The package has two parts. The core (core.go, dispatch.go, transaction.go, external.go, healing.go) is a state machine: begin(event)
// calls the handlers and returns the transaction, finish(outcome of the commit) returns the next step. It has no goroutine and no clock.
// The driver (loop.go, queue.go) is the one goroutine that takes events out of the queues, passes transactions to the dataplane, and sleeps
// until the core's next deadline. README.md has a diagram.
//
// # The caller's duties
//
// The code that assembles the agent:
//
//  1. calls New, passes the Controller to plugins as api.EventLoop and api.ConfigRetriever, and calls Start with the plugins
//     in the order in which they receive events;
//  2. calls Close before it stops the lifecycle group and closes the dataplane, so that plugins can handle Shutdown;
//  3. publishes Ready and Healthy as the readiness and the liveness of the agent (never of VPP);
//  4. calls DataplaneReconnected whenever the dataplane may have lost its configuration.
//
// Code that pushes events:
//
//  1. makes them pointers, implements all of api.UpdateEvent for update events, and expects Done in the loop's goroutine: it must
//     neither block nor wait for another event;
//  2. pushes a DBResync before anything can happen, and KubeStateChange events in the order of the changes. A DBResync has
//     in it all changes that were pushed before it. Changes from before the very first DBResync are replayed after it, so
//     a watcher that reads a snapshot and then follows from there pushes none;
//  3. after ErrQueueFull for a KubeStateChange, pushes a DBResync as soon as there is room: the change is lost;
//  4. uses PushFollowUp(cause, event) inside a handler, never PushEvent with a blocking event: code inside the loop cannot
//     wait. PushEvent cannot detect its caller; it would return an error after half a minute.
//
// The code that applies transactions reports failed values with a *txn.Error. Any other error means that the transaction was not processed,
// so it is healed even if the event ignores errors.
//
// Handlers:
//
//  1. do not block and do no I/O; they start slow work as a job, and the job reports its result as an event;
//  2. return true for resync events in HandlesEvent: a value that is not put in a resync is no longer desired;
//  3. put the complete configuration in Resync without relying on follow-ups, since verification compares only this configuration;
//  4. do not keep the KubeStateData that Resync is given, which the controller continues to change, and do not change values
//     that they have put;
//  5. accept resyncCount == 1 more than once: a start-up resync that has failed is repeated;
//  6. return api.AbortEventError when this event cannot be processed further, api.FatalError when the agent
//     cannot continue. A panic counts as an ordinary error.
//
// # Failures
//
// RevertOnFailure undoes all: Revert of each handler that was called, the last one first and the failed one included; the dataplane undoes
// its part; follow-ups pushed by the event are dropped with errCauseReverted. After a panic it is healed, too. BestEffort continues with the
// other handlers, commits, and joins the errors. A handler that fails in a resync keeps its previous configuration; at the start-up resync there is no previous
// configuration, so nothing is committed.
//
// The dataplane alone handles failed values that it retries. Values that BestEffortIgnoreErrors could not remove, and that are not retried,
// are removed by a downstream resync, with back-off, while the node stays ready. All other errors, also those of handlers that fail or panic
// while they handle an event that ignores errors, are healed by a full resync after
// DelayAfterErrorHealing; a healing that fails makes the node unready and is repeated with back-off until one succeeds. A repeated start-up
// resync includes the queued changes of the cluster's state: one of them may remove the object that made the resync fail. After a
// FatalError updates are rejected until a full resync (from the database or POST /controller/resync) succeeds. No error ever stops VPP or
// ends the process.
//
// # Goroutines and ownership
//
// PushEvent, PushFollowUp, GetConfig, DataplaneReconnected, Resync, EventHistory, Ready and Healthy may be called from any goroutine.
// Records of the history are never changed once they are published.
package controller
