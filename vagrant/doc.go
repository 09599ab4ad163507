// Package vagrant holds the Vagrantfile of a cluster for trials and its provisioning script, which the tests here run dry.
package vagrant
