// Package output writes the northbound values of the service renderers for VPP into the transaction of an event, each under its own key, and
// collects the errors of the event. A renderer makes one Writer for each event.
package output
