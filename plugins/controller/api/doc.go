// Package api is the contract between the controller (the event loop) and its plugins.
//
// A plugin is an EventHandler. Each change in the cluster or on the node is an Event. An event that changes configuration makes exactly one
// dataplane transaction, which the handlers fill one after another. The package contains no decisions, so that plugins can be tested
// without the controller and the controller without plugins. The names are those of contiv.
package api
