// Package api is the contract between the controller (the event loop) and its plugins.
//
// A plugin is an EventHandler; what happens is an Event; an event that changes configuration makes exactly one dataplane transaction, which
// the handlers fill one after another. The package has no code that decides anything, so that plugins can be tested without the controller
// and the controller without plugins. The names are contiv's.
package api
