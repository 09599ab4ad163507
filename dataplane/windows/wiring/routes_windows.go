package wiring

import (
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/windows"
)

// ourMetric marks our routes: Windows does not store which program made a route.
const ourMetric = 4077

// Routes implements HostRoutes for the routes of this machine.
type Routes struct{}

var (
	iphlpapi                      = windows.NewLazySystemDLL("iphlpapi.dll")
	procInitForward               = iphlpapi.NewProc("InitializeIpForwardEntry")
	procCreateForward             = iphlpapi.NewProc("CreateIpForwardEntry2")
	procDeleteForward             = iphlpapi.NewProc("DeleteIpForwardEntry2")
	_                  HostRoutes = Routes{}
	errNoRouteToTarget            = errors.New("the node does not reach the next hop")
)

// List implements HostRoutes.
func (Routes) List() ([]HostRoute, error) {
	rows, err := ourRows()
	var out []HostRoute
	for i := range rows {
		r, ok := readRow(&rows[i])
		if ok {
			out = append(out, r)
		}
	}
	return out, err
}

func ourRows() ([]windows.MibIpForwardRow2, error) {
	var table *windows.MibIpForwardTable2
	if err := windows.GetIpForwardTable2(windows.AF_UNSPEC, &table); err != nil {
		return nil, fmt.Errorf("GetIpForwardTable2: %w", err)
	}
	defer windows.FreeMibTable(unsafe.Pointer(table))
	var out []windows.MibIpForwardRow2
	for _, row := range table.Rows() {
		if row.Metric == ourMetric {
			out = append(out, row)
		}
	}
	return out, nil
}

func readRow(row *windows.MibIpForwardRow2) (HostRoute, bool) {
	dst, ok := readAddr(&row.DestinationPrefix.Prefix)
	next, is := readAddr(&row.NextHop)
	return HostRoute{Destination: netip.PrefixFrom(dst, int(row.DestinationPrefix.PrefixLength)), NextHop: next}, ok && is
}

// Add implements HostRoutes.
func (Routes) Add(r HostRoute) error {
	var row windows.MibIpForwardRow2
	procInitForward.Call(uintptr(unsafe.Pointer(&row)))
	writeAddr(&row.DestinationPrefix.Prefix, r.Destination.Addr())
	row.DestinationPrefix.PrefixLength = uint8(r.Destination.Bits())
	writeAddr(&row.NextHop, r.NextHop)
	index, err := interfaceTo(r.NextHop)
	if err != nil {
		return err
	}
	row.InterfaceIndex, row.Metric, row.Protocol = index, ourMetric, mibNetMgmt
	if code, _, _ := procCreateForward.Call(uintptr(unsafe.Pointer(&row))); code != 0 && windows.Errno(code) != windows.ERROR_OBJECT_ALREADY_EXISTS {
		return fmt.Errorf("CreateIpForwardEntry2: %w", windows.Errno(code))
	}
	return nil
}

// mibNetMgmt is MIB_IPPROTO_NETMGMT: a static route.
const mibNetMgmt = 3

// Remove implements HostRoutes.
func (Routes) Remove(r HostRoute) error {
	rows, err := ourRows()
	if err != nil {
		return err
	}
	for i := range rows {
		if have, ok := readRow(&rows[i]); !ok || have != r {
			continue
		}
		code, _, _ := procDeleteForward.Call(uintptr(unsafe.Pointer(&rows[i])))
		if code != 0 && windows.Errno(code) != windows.ERROR_NOT_FOUND {
			return fmt.Errorf("DeleteIpForwardEntry2: %w", windows.Errno(code))
		}
	}
	return nil
}

func interfaceTo(a netip.Addr) (index uint32, err error) {
	var to windows.Sockaddr = &windows.SockaddrInet6{Addr: a.As16()}
	if a.Is4() {
		to = &windows.SockaddrInet4{Addr: a.As4()}
	}
	if err := windows.GetBestInterfaceEx(to, &index); err != nil {
		return 0, fmt.Errorf("%w %s: %w", errNoRouteToTarget, a, err)
	}
	return index, nil
}

func readAddr(raw *windows.RawSockaddrInet) (netip.Addr, bool) {
	switch raw.Family {
	case windows.AF_INET:
		return netip.AddrFrom4((*windows.RawSockaddrInet4)(unsafe.Pointer(raw)).Addr), true
	case windows.AF_INET6:
		return netip.AddrFrom16((*windows.RawSockaddrInet6)(unsafe.Pointer(raw)).Addr), true
	}
	return netip.Addr{}, false
}

func writeAddr(raw *windows.RawSockaddrInet, a netip.Addr) {
	if a.Is4() {
		in := (*windows.RawSockaddrInet4)(unsafe.Pointer(raw))
		in.Family, in.Addr = windows.AF_INET, a.As4()
		return
	}
	in := (*windows.RawSockaddrInet6)(unsafe.Pointer(raw))
	in.Family, in.Addr = windows.AF_INET6, a.As16()
}
