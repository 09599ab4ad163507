// Package choice passes services to the renderers that fit the running VPP: those for our own plugin (vppsvc), or those for a VPP without
// it (nat44). It chooses at each resync; the agent requests a resync when VPP is replaced.
package choice
