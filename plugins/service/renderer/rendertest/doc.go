// Package rendertest is a renderer for tests: it renders into memory and checks that it is called as the contract says.
package rendertest
