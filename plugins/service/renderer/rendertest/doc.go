// Package rendertest is a renderer for tests: it renders into memory and checks that it is called according to the contract.
package rendertest
