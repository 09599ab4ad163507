// Package renderer defines what the policy plugin requires of a dataplane: a renderer that turns the objects of package model into
// northbound values.
package renderer
