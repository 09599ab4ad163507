// Package contivconf returns the configuration of this node.
//
// The operator writes one file for the whole cluster, contiv.conf; it has contiv's option names and defaults and may contain a section per
// node. File is the file as written, with every option optional. New merges it with the defaults and with the section of this node,
// validates the result, and reports all faults together, each with the name of its option and the fix. Package conffile reads File from
// YAML or JSON.
//
// Precedence: the node's section, then the global option, then the default. If contiv has different defaults in its code and in its Helm
// chart, the default of the chart is used.
//
// Options with a network or an address have one per family, separated by commas ("10.1.0.0/16,fd10:1::/48"); the corresponding prefix
// lengths are lists in the same order ("24,64"). The families in use are those of podSubnetCIDR and contivCIDR; each family has its own
// defaults for all other options.
package contivconf
