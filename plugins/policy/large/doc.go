// Package large finds ClusterNetworkPolicies that have sets over the limit, for the conditions of the policies. It is used by the node that
// writes the conditions, and by contiv-ksr.
package large
