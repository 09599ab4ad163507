// Package l2 has the descriptors of bridge domains, their members, L2 FIB entries and cross-connects.
package l2
