// Package problem informs users about Kubernetes objects that are not served as specified: by an Event on the object and by a metric.
// The part that finds a problem reports it with Set, from the event loop; a job writes the Events.
package problem
