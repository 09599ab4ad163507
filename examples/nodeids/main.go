// Command nodeids shows how to use package nodesync with another database: it implements the cluster-wide database in which nodesync allocates
// node IDs, as a map in memory, and lets two nodes allocate their IDs. It compiles and runs only while the documented interfaces of nodesync
// stay as they are.
package main

import (
	"fmt"
	"os"

	controller "contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync"
)

func main() {
	db := newDB()
	for _, name := range []string{"node-a", "node-b"} {
		id, err := join(db, name)
		if err != nil {
			fmt.Fprintln(os.Stderr, "nodeids:", err)
			os.Exit(1)
		}
		fmt.Printf("%s has the ID %d\n", name, id)
	}
}

// label is the name of a node.
type label string

func (l label) GetAgentLabel() string { return string(l) }

// loop is an event loop that drops events.
type loop struct{}

func (loop) PushEvent(controller.Event) error                      { return nil }
func (loop) PushFollowUp(controller.Event, controller.Event) error { return nil }

// join allocates the ID of a node.
func join(db *database, name string) (id uint32, err error) {
	ns := nodesync.NewPlugin(nodesync.UseDeps(func(d *nodesync.Deps) {
		d.ServiceLabel, d.EventLoop, d.DB = label(name), loop{}, db
	}))
	if err := ns.Init(); err != nil {
		return 0, err
	}
	defer ns.Close()
	ev := controller.NewDBResync()
	if err := ns.Resync(ev, ev.KubeState, 1, nil); err != nil {
		return 0, err
	}
	return ns.GetNodeID(), nil
}
