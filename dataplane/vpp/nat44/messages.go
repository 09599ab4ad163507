package nat44

import (
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/feature"
	"go.fd.io/govpp/binapi/nat44_ed"
)

// Messages returns all requests that the descriptors of this package send.
func Messages() []api.Message {
	return []api.Message{
		&feature.FeatureEnableDisable{}, &feature.FeatureIsEnabled{}, &nat44_ed.Nat44AddDelAddressRange{},
		&nat44_ed.Nat44AddDelIdentityMapping{}, &nat44_ed.Nat44AddDelLbStaticMapping{}, &nat44_ed.Nat44AddDelStaticMappingV2{},
		&nat44_ed.Nat44AddressDump{}, &nat44_ed.Nat44DelSession{}, &nat44_ed.Nat44EdAddDelOutputInterface{},
		&nat44_ed.Nat44EdOutputInterfaceGet{}, &nat44_ed.Nat44EdPluginEnableDisable{}, &nat44_ed.Nat44ForwardingEnableDisable{},
		&nat44_ed.Nat44IdentityMappingDump{}, &nat44_ed.Nat44InterfaceAddDelFeature{}, &nat44_ed.Nat44InterfaceDump{},
		&nat44_ed.Nat44LbStaticMappingAddDelLocal{}, &nat44_ed.Nat44LbStaticMappingDump{}, &nat44_ed.Nat44ShowRunningConfig{},
		&nat44_ed.Nat44StaticMappingDump{}, &nat44_ed.Nat44UserSessionV3Dump{}, &nat44_ed.NatSetTimeouts{},
		&nat44_ed.NatWorkerDump{},
	}
}
