package main

import (
	"github.com/containernetworking/cni/pkg/types"

	"contiv.dev/vswitch/internal/cniapi"
)

// checkPlatformNetns accepts GUIDs only: on Windows a namespace is not a file.
func checkPlatformNetns(netns string) (handled bool, err error) {
	if !cniapi.IsGUID(netns) {
		return true, types.NewError(types.ErrInvalidNetNS, "CNI_NETNS "+netns+" is not the GUID of an HNS namespace, which containerd has to set", "")
	}
	return true, nil
}

// isNamespace is not called on Windows.
func isNamespace(string) bool { return true }
