// Command contiv-cni is the CNI plugin of Contiv. The container runtime executes it for every pod. It passes each request on to contiv-agent
// (package internal/cniapi) and prints the agent's answer in the version of the specification that the network configuration selects: 0.3.1,
// 0.4.0, 1.0.0 or 1.1.0.
//
// Its part of a network configuration; every key but type is optional:
//
//	{
//	  "type": "contiv-cni",
//	  "agentSocket": "/run/contiv/cni.sock",
//	  "mtu": 1450,                              (default: the agent's)
//	  "timeout": "20s",                         (of one command)
//	  "logFile": "/var/log/contiv-cni.log",     (default: no log)
//	  "dns": {"nameservers": ["10.96.0.10"]},
//	  "capabilities": {"dns": true}
//	}
//
// It allocates no addresses itself: the agent does, so "ipam" must be absent.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/version"
)

// stamp is the version. The linker sets it, like the one of internal/version.
var stamp = "devel"

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println("contiv-cni", stamp)
		return
	}
	p := &plugin{query: queryAgent, appendLog: appendLine, stdout: os.Stdout}
	skel.PluginMainFuncs(p.funcs(context.Background()), version.PluginSupports("0.3.1", "0.4.0", "1.0.0", "1.1.0"),
		"contiv-cni "+stamp+": the CNI plugin of Contiv; it is executed by the container runtime")
}
