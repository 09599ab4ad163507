package renderer

import "contiv.dev/vswitch/internal/kube/svcmodel"

// ServiceID is the type of ContivService.ID, for renderers outside this module.
type ServiceID = svcmodel.ID
