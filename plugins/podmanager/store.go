package podmanager

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"contiv.dev/vswitch/internal/atomicfile"
	"contiv.dev/vswitch/internal/cniapi"
)

const (
	storeVersion  = 1
	recordSuffix  = ".json"
	tempSuffix    = ".tmp" // of atomicfile
	corruptSuffix = ".corrupt"
)

// store keeps one file per attachment. Only the event loop uses it, after New has returned.
type store struct {
	dir    string
	bootID string
	log    *slog.Logger
}

// record is the content of a file.
type record struct {
	Version      int            `json:"version"`
	ContainerID  string         `json:"containerID"`
	IfName       string         `json:"ifName"`
	PodNamespace string         `json:"podNamespace,omitempty"`
	PodName      string         `json:"podName"`
	PodUID       string         `json:"podUID,omitempty"`
	Netns        string         `json:"netns"`
	NetnsInode   uint64         `json:"netnsInode,omitempty"`
	Addresses    []netip.Prefix `json:"addresses,omitempty"`
	MTU          int            `json:"mtu,omitempty"`
	Network      string         `json:"network,omitempty"`
	DNS          cniapi.DNS     `json:"dns,omitzero"`
	Seq          uint64         `json:"seq"`
	BootID       string         `json:"bootID,omitempty"`
}

func newRecord(a *Attachment, bootID string) *record {
	return &record{
		Version: storeVersion, ContainerID: a.ID.ContainerID, IfName: a.ID.IfName,
		PodNamespace: a.Pod.Namespace, PodName: a.Pod.Name, PodUID: a.PodUID,
		Netns: a.Netns, NetnsInode: a.NetnsInode, Addresses: a.Addresses,
		MTU: a.MTU, Network: a.Network, DNS: a.DNS, Seq: a.Seq, BootID: bootID,
	}
}

func (r *record) attachment() *Attachment {
	return &Attachment{
		ID:    AttachmentID{ContainerID: r.ContainerID, IfName: r.IfName},
		Pod:   PodID{Namespace: r.PodNamespace, Name: r.PodName},
		Netns: r.Netns, NetnsInode: r.NetnsInode, Addresses: r.Addresses,
		MTU: r.MTU, Network: r.Network, DNS: r.DNS, PodUID: r.PodUID, Seq: r.Seq,
	}
}

// fileName returns the file name of an attachment: an ID cannot contain an '@', so the name is unambiguous.
func fileName(id AttachmentID) string { return id.ContainerID + "@" + id.IfName + recordSuffix }

// write replaces the file. It is not synced to disk: it has to survive the agent, not the machine.
func (s *store) write(a *Attachment) error {
	data, err := json.Marshal(newRecord(a, s.bootID))
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if err := atomicfile.WriteUnsynced(filepath.Join(s.dir, fileName(a.ID)), data, 0o600); err != nil {
		return fmt.Errorf("write (make sure that %s is writable and has room): %w", s.dir, err)
	}
	return nil
}

func (s *store) remove(id AttachmentID) error {
	err := os.Remove(filepath.Join(s.dir, fileName(id)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// errNewer means that a file was written by a newer agent: the node has been downgraded. The pod runs, so its file must stay. The agent must not
// start without it either, because it would remove the pod's interface.
var errNewer = errors.New("written by a newer version of the agent")

// loadAll reads the files that the previous agent has left. Invalid files are renamed. Files of a newer agent are an error.
func (s *store) loadAll() ([]*Attachment, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("create attachment store: %w", err)
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("read attachment store: %w", err)
	}
	var all []*Attachment
	var newer []error
	for _, e := range entries {
		path := filepath.Join(s.dir, e.Name())
		if strings.HasSuffix(e.Name(), tempSuffix) {
			_ = os.Remove(path) // the agent was killed before the rename
			continue
		}
		if !strings.HasSuffix(e.Name(), recordSuffix) {
			continue
		}
		r, err := s.load(path)
		if errors.Is(err, errNewer) && !s.ofEarlierBoot(r) {
			newer = append(newer, fmt.Errorf("%s: %w", path, err))
			continue
		}
		if err != nil && !errors.Is(err, errNewer) {
			s.quarantine(path, err)
			continue
		}
		if s.ofEarlierBoot(r) {
			s.log.Info("attachment dropped", "file", path, "reason", "the machine has been rebooted")
			_ = os.Remove(path)
			continue
		}
		all = append(all, r.attachment())
	}
	if len(newer) > 0 {
		return nil, fmt.Errorf("%w; upgrade the agent again, or drain and reboot the node before you start this version; its pods keep their "+
			"network meanwhile", errors.Join(newer...))
	}
	return all, nil
}

// ofEarlierBoot reports whether the machine has been rebooted since the file was written, so that its pod does not run.
func (s *store) ofEarlierBoot(r *record) bool {
	return r.BootID != "" && s.bootID != "" && r.BootID != s.bootID
}

func (s *store) load(path string) (*record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseRecord(filepath.Base(path), data)
}

// parseRecord validates all properties on which later code relies. It accepts interfaces that an earlier agent attached and that no ADD may request
// any more. With errNewer it returns the boot ID only.
func parseRecord(name string, data []byte) (*record, error) {
	var head struct {
		Version int    `json:"version"`
		BootID  string `json:"bootID"`
	}
	if err := json.Unmarshal(data, &head); err == nil && head.Version > storeVersion {
		return &record{BootID: head.BootID}, fmt.Errorf("%w: the file has version %d, this agent reads version %d", errNewer, head.Version, storeVersion)
	}
	r := &record{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, err
	}
	if r.Version != storeVersion {
		return nil, fmt.Errorf("version %d is not known", r.Version)
	}
	req := cniapi.Request{Version: cniapi.Version, Command: cniapi.Check, ContainerID: r.ContainerID, IfName: r.IfName, Netns: r.Netns}
	if err := req.Validate(); err != nil {
		return nil, err
	}
	if want := fileName(r.attachment().ID); name != want {
		return nil, fmt.Errorf("the content belongs in file %s", want)
	}
	if r.PodName == "" {
		return nil, errors.New("no pod name")
	}
	for _, addr := range r.Addresses {
		if !addr.IsValid() {
			return nil, errors.New("an address is invalid")
		}
	}
	return r, nil
}

func (s *store) quarantine(path string, reason error) {
	s.log.Error("attachment file is corrupt and was renamed; delete its pod", "file", path+corruptSuffix, "error", reason)
	if err := os.Rename(path, path+corruptSuffix); err != nil {
		s.log.Error("corrupt attachment file cannot be renamed", "file", path, "error", err)
	}
}
