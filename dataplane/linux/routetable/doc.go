// Package routetable keeps the main routing table's routes of the Linux driver, and the static neighbours that belong to them,
// as desired. It owns the routes that carry its protocol number.
package routetable
