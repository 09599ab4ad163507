// Package renderer is what the policy plugin needs of a dataplane: something that turns the objects of package model into northbound
// values.
package renderer
