// Package problem informs users of objects of Kubernetes that are not served as they say: as an Event on the object and as a metric. Who
// finds a problem reports it with Set, from the event loop; a job writes the Events.
package problem
