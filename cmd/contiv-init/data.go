package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"contiv.dev/vswitch/internal/kube"
)

// A member whose pod moves to another node is removed from the cluster and added with another ID, but its data stays on the old node. If the pod
// returns, or if the number of members was reduced in the meantime, etcd would start as the member that was removed, and end at once, again and
// again. So a member with data asks the others first.

// data returns the directory of the member's data, and whether there is data to start with. It renames directories whose members were removed from
// the cluster.
func (m *member) data(ctx context.Context, j *joiner) (string, bool, error) {
	for {
		dir, log := m.lastDir()
		if log == "" {
			return filepath.Join(m.dataDir, m.name), false, nil
		}
		ok, err := m.keep(ctx, j, dir, log)
		switch {
		case err != nil:
			return "", false, err
		case ok:
			dir, err = m.takeOver(dir)
			return dir, true, err
		}
	}
}

// takeOver gives the directory the member's name, because a single member, which remains when the number of members is reduced, uses no other.
func (m *member) takeOver(dir string) (string, error) {
	own := filepath.Join(m.dataDir, m.name)
	if dir == own {
		return own, nil
	}
	m.log.Info("using the data of the member that ran on this node last", "path", dir, "dir", own)
	err := os.Rename(own, aside(own))
	if err == nil || errors.Is(err, os.ErrNotExist) {
		err = os.Rename(dir, own)
	}
	if err != nil {
		return "", fmt.Errorf("rename the etcd data in %s to %s: %w", dir, own, err)
	}
	return own, nil
}

// aside returns another name for a directory of data that is not used any more.
func aside(dir string) string { return dir + ".removed-" + time.Now().UTC().Format("20060102T150405Z") }

// lastDir returns the directory on this node to which a member wrote last, and its write-ahead log, or nothing if there is no data. The name is that
// of the pod which made the directory, and may be another one: if several pods start at the same time, the scheduler may exchange their nodes. A
// member is identified by its ID and its node's peer URL, and the directory written last is that of the URL's last owner. etcd publishes the new name
// itself. A single member has no others with which it could have exchanged its node: then a directory of another name is of a former, larger cluster.
func (m *member) lastDir() (dir, log string) {
	dirs := []string{filepath.Join(m.dataDir, m.name)}
	if m.members > 1 {
		if others, err := filepath.Glob(filepath.Join(m.dataDir, strings.TrimRight(m.name, digits)+"*")); err == nil {
			dirs = append(dirs, others...)
		}
	}
	var last time.Time
	for _, d := range dirs {
		if strings.TrimRight(d, digits) != strings.TrimRight(dirs[0], digits) {
			continue
		}
		l := lastLog(d)
		if info, err := os.Stat(l); err == nil && (log == "" || info.ModTime().After(last)) {
			dir, log, last = d, l, info.ModTime()
		}
	}
	return dir, log
}

// keep renames the directory if the member to which it belongs was removed from the cluster; log is a write-ahead log in the directory. Without
// an answer it keeps the directory: when all members start at the same time, none of them has a quorum yet. A member that was removed while its pod
// runs does not join: the administrator reduces the number of members, and removes the pod next.
func (m *member) keep(ctx context.Context, j *joiner, dir, log string) (bool, error) {
	id, err := memberID(log)
	if err != nil {
		m.log.Warn("cannot read which member of etcd has written this file; starting with its data", "file", log, "error", err)
		return true, nil
	}
	removed, err := j.removed(ctx, id)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		m.log.Info("no other member of etcd confirms that this member is part of the cluster; starting with its data", "dir", dir, "reason", err.Error())
		return true, nil
	}
	if !removed {
		return true, nil
	}
	if m.restarted {
		return false, fmt.Errorf("member %s of etcd, whose data is in %s, was removed from the cluster; to let this pod join without these data, delete the pod", id, dir)
	}
	name := aside(dir)
	if err := os.Rename(dir, name); err != nil {
		return false, fmt.Errorf("the data in %s is of a member that was removed from etcd; move the directory to another place: %w", dir, err)
	}
	m.log.Warn("the data is of a member that was removed from etcd; joining the cluster without it", "dir", dir, "oldID", id, "path", name)
	return false, nil
}

// removed reports whether the cluster has no member with the ID. Each other member is asked once. Only one with a quorum answers: the list of a
// member that was removed itself proves nothing.
func (j *joiner) removed(ctx context.Context, id string) (bool, error) {
	others, err := j.others(ctx)
	if err != nil {
		return false, err
	}
	failed := []error{fmt.Errorf("%d other members exist", len(others))}
	for _, o := range others {
		list, err := j.call(ctx, j.client(o.Addr)+memberList, map[string]any{"linearizable": true})
		if err == nil {
			return !slices.ContainsFunc(list, func(p etcdPeer) bool { return p.ID == id }), nil
		}
		failed = append(failed, failure(o, err))
	}
	return false, errors.Join(failed...)
}

func failure(o kube.Endpoint, err error) error { return fmt.Errorf("%s: %w", o.Pod, err) }

// lastLog returns the write-ahead log in a data directory that was created last, or "" if etcd has not been part of a cluster with this directory.
// The directory alone does not prove it: etcd makes it before it has joined.
func lastLog(dir string) string {
	logs, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(logs) == 0 {
		return ""
	}
	return slices.Max(logs) // the names begin with a sequence number
}

// The numbers in etcd's walpb.Record and etcdserverpb.Metadata. These packages would link gRPC into this command.
const (
	recordType     protowire.Number = 1
	recordData     protowire.Number = 3
	metadataNodeID protowire.Number = 1
	metadataRecord                  = 1 // a value of recordType
)

// digits are those of a pod's ordinal number.
const digits = "0123456789"

var errLog = errors.New("not a write-ahead log of etcd")

// memberID returns the ID of the member that has written the write-ahead log, in the form of etcd's JSON. Each log begins with a checksum and the
// metadata. A record has a length of 7 bytes and one byte with the padding before it.
func memberID(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return "", err
	}
	for range 2 {
		if len(data) < 8 {
			return "", errLog
		}
		frame := binary.LittleEndian.Uint64(data)
		size, padding := frame&(1<<56-1), frame>>56&7
		if data = data[8:]; size > uint64(len(data)) || size+padding > uint64(len(data)) {
			return "", errLog
		}
		record := data[:size]
		data = data[size+padding:]
		if kind, _ := field(record, recordType); kind != metadataRecord {
			continue
		}
		_, metadata := field(record, recordData)
		if id, _ := field(metadata, metadataNodeID); id != 0 {
			return strconv.FormatUint(id, 10), nil
		}
	}
	return "", errLog
}

// field returns a field of a protobuf message: a number or bytes. A field that does not exist is 0 and empty.
func field(message []byte, wanted protowire.Number) (uint64, []byte) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return 0, nil
		}
		message = message[n:]
		size := protowire.ConsumeFieldValue(number, kind, message)
		if size < 0 {
			return 0, nil
		}
		if number == wanted {
			value, _ := protowire.ConsumeVarint(message)
			text, _ := protowire.ConsumeBytes(message)
			if kind == protowire.VarintType {
				return value, nil
			}
			return 0, text
		}
		message = message[size:]
	}
	return 0, nil
}
