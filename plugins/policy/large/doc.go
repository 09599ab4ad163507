// Package large finds ClusterNetworkPolicies that have sets over the limit, for the conditions of the policies: for the node that writes them, and for
// contiv-ksr.
package large
