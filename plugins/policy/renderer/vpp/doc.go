// Package vpp renders policy for our VPP plugin. Each member of a set and the policies of each endpoint are separate values: one more
// member is one message. On a VPP without the plugin only endpoints are rendered: pods that no policy restricts start, others do not.
package vpp
