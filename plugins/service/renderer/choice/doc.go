// Package choice hands services to the renderers that fit the VPP that is there: those for our own plugin (vppsvc), or those for a
// VPP without it (nat44). It decides at each resync; the agent asks for one when VPP is replaced.
package choice
