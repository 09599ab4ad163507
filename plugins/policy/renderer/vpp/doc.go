// Package vpp renders policy for our VPP plugin. A set's members and what applies to an endpoint are their own values: one member more is
// one message. On a VPP without the plugin only endpoints are rendered: pods that no policy restricts start, others do not.
package vpp
