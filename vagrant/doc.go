// Package vagrant holds the Vagrantfile of a trial cluster and its provisioning script; the tests here do a dry run of the
// script.
package vagrant
