package policy

func (p *Plugin) serve() {}
