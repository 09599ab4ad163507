// Package linux renders policy for the Linux driver: in Felix's messages, as northbound values (dataplane/feed). A set's members and what
// applies to an endpoint are their own values.
package linux
