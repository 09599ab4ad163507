// Package contivconf answers what the configuration of this node is.
//
// The operator writes one file for the whole cluster, contiv.conf; it has contiv's option names and defaults and may hold a
// section per node. File is the file as written, every option optional. New merges it with the defaults and with the section
// of this node, checks the result, and reports everything that is wrong in one go, each fault with the name of its option and
// what to do about it. Package conffile reads File from YAML or JSON.
//
// Precedence: the node's section, then the global option, then the default. Where contiv has a default in its code and
// another one in its Helm chart, the chart's holds.
//
// Options that take a network or an address take one per family, separated by commas ("10.1.0.0/16,fd10:1::/48"); the prefix
// lengths that belong to them are lists in the same order ("24,64"). The families in use are those of podSubnetCIDR and
// contivCIDR; each gets its own defaults for everything else.
package contivconf
