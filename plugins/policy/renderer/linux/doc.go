// Package linux renders policy for the Linux driver: as messages of Felix, which are northbound values (dataplane/feed). Each member of a
// set and the policies of each endpoint are separate values.
package linux
