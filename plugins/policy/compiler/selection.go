package compiler

import "slices"

// selection relates pods to selectors, and updates the relation when pods or selectors change.
type selection struct {
	namespaces map[string]*namespace
	scopes     map[string]*scope
	// choices returns the place where a pod stores its choices of this selection.
	choices func(p *pod) *[]*choice
	// changed is called when a pod joins or leaves a choice.
	changed func(c *choice, p *pod, joined bool)
}

// namespace is a namespace with its pods. It exists while it has an object, pods, or its own scope.
type namespace struct {
	name    string
	labels  map[string]string
	known   bool // has an object
	pods    podSet
	byLabel map[pair]*podSet
	scopes  []*scope // those that apply to it
}

// scope is the set of namespaces to which choices apply: one by name, or those that a selector selects.
type scope struct {
	text       string
	name       string    // of the one namespace, if selector is nil
	selector   *selector // of namespaces
	namespaces map[*namespace]struct{}
	choices    map[string]*choice // by the text of their selector
	byAnchor   map[pair][]*choice
	others     []*choice // those without anchors
}

// choice holds the pods that a selector selects in a scope.
type choice struct {
	scope    *scope
	selector *selector
	pods     podSet
	sets     []*set    // that are compiled from it
	policies []*policy // that apply to it
}

// text identifies a choice and describes it in words.
func (c *choice) text() string {
	if c.selector.text == "" {
		return "pods of " + c.scope.text
	}
	return "pods of " + c.scope.text + " with " + c.selector.text
}

func newSelection(choices func(p *pod) *[]*choice, changed func(c *choice, p *pod, joined bool)) *selection {
	return &selection{namespaces: map[string]*namespace{}, scopes: map[string]*scope{}, choices: choices, changed: changed}
}

// choose returns the choice of a selector in the namespace name, or, if namespaces is not nil, in the namespaces that it selects. The
// caller adds itself to sets or policies, and calls release after it has removed itself.
func (s *selection) choose(name string, namespaces, pods *selector) *choice {
	sc := s.scope(name, namespaces)
	if c := sc.choices[pods.text]; c != nil {
		return c
	}
	c := &choice{scope: sc, selector: pods}
	sc.choices[pods.text] = c
	for _, a := range pods.anchors {
		sc.byAnchor[a] = append(sc.byAnchor[a], c)
	}
	if pods.anchors == nil {
		sc.others = append(sc.others, c)
	}
	for ns := range sc.namespaces {
		ns.candidates(pods, func(p *pod) {
			if pods.matches(p.labels()) {
				s.join(c, p)
			}
		})
	}
	return c
}

// release deletes a choice that is not in use.
func (s *selection) release(c *choice) {
	if len(c.sets)+len(c.policies) > 0 {
		return
	}
	for p := range c.pods.all() {
		s.leave(c, p)
	}
	sc := c.scope
	delete(sc.choices, c.selector.text)
	for _, a := range c.selector.anchors {
		if sc.byAnchor[a] = without(sc.byAnchor[a], c); len(sc.byAnchor[a]) == 0 {
			delete(sc.byAnchor, a)
		}
	}
	sc.others = without(sc.others, c)
	if len(sc.choices) > 0 {
		return
	}
	delete(s.scopes, sc.text)
	for ns := range sc.namespaces {
		ns.scopes = without(ns.scopes, sc)
		s.removeNamespace(ns)
	}
}

func without[T comparable](list []T, gone T) []T {
	if i := slices.Index(list, gone); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// allNamespaces is the text of the scope that contains all namespaces.
const allNamespaces = "all namespaces"

func (s *selection) scope(name string, namespaces *selector) *scope {
	text := "namespace " + quote(name)
	switch {
	case namespaces != nil && namespaces.text == "":
		text = allNamespaces
	case namespaces != nil:
		text = "namespaces with " + namespaces.text
	}
	if sc := s.scopes[text]; sc != nil {
		return sc
	}
	sc := &scope{text: text, name: name, selector: namespaces, namespaces: map[*namespace]struct{}{}, choices: map[string]*choice{},
		byAnchor: map[pair][]*choice{}}
	s.scopes[text] = sc
	if namespaces == nil {
		sc.enter(s.namespace(name))
		return sc
	}
	for _, ns := range s.namespaces {
		if sc.appliesTo(ns) {
			sc.enter(ns)
		}
	}
	return sc
}

// appliesTo reports whether the namespace is in the scope. The labels of a namespace without an object are not known: no selector selects
// it, except for the empty selector.
func (sc *scope) appliesTo(ns *namespace) bool {
	if sc.selector == nil {
		return ns.name == sc.name
	}
	return sc.text == allNamespaces || ns.known && sc.selector.matches(ns.labels)
}

func (sc *scope) enter(ns *namespace) {
	sc.namespaces[ns] = struct{}{}
	ns.scopes = append(ns.scopes, sc)
}

func (s *selection) namespace(name string) *namespace {
	ns := s.namespaces[name]
	if ns == nil {
		ns = &namespace{name: name, byLabel: map[pair]*podSet{}}
		s.namespaces[name] = ns
		if all := s.scopes[allNamespaces]; all != nil {
			all.enter(ns)
		}
	}
	return ns
}

// removeNamespace deletes a namespace that is no longer needed.
func (s *selection) removeNamespace(ns *namespace) {
	if ns.known || ns.pods.len() > 0 {
		return
	}
	for _, sc := range ns.scopes {
		if sc.text != allNamespaces {
			return
		}
	}
	for _, sc := range ns.scopes {
		delete(sc.namespaces, ns)
	}
	delete(s.namespaces, ns.name)
}

// setNamespace sets the labels of a namespace; known is false if it has no object.
func (s *selection) setNamespace(name string, labels map[string]string, known bool) {
	ns := s.namespace(name)
	ns.labels, ns.known = labels, known
	for _, sc := range s.scopes {
		_, was := sc.namespaces[ns]
		switch is := sc.appliesTo(ns); {
		case is && !was:
			sc.enter(ns)
			for _, c := range sc.choices {
				ns.candidates(c.selector, func(p *pod) {
					if c.selector.matches(p.labels()) {
						s.join(c, p)
					}
				})
			}
		case was && !is:
			delete(sc.namespaces, ns)
			ns.scopes = without(ns.scopes, sc)
			for p := range ns.pods.all() {
				for _, c := range slices.Clone(*s.choices(p)) {
					if c.scope == sc {
						s.part(c, p)
					}
				}
			}
		}
	}
	s.removeNamespace(ns)
}

// candidates calls yield for the pods of the namespace that a selector may select.
func (ns *namespace) candidates(sel *selector, yield func(p *pod)) {
	if sel.anchors == nil {
		for p := range ns.pods.all() {
			yield(p)
		}
		return
	}
	for _, a := range sel.anchors {
		if set := ns.byLabel[a]; set != nil {
			for p := range set.all() {
				yield(p)
			}
		}
	}
}

// add adds a pod with its labels.
func (s *selection) add(p *pod, labels map[string]string) {
	ns := s.namespace(p.id.Namespace)
	ns.pods.add(p)
	for k, v := range labels {
		ns.index(pair{k, v}, p)
	}
	s.compare(ns, p, labels)
}

// remove removes a pod that has these labels.
func (s *selection) remove(p *pod, labels map[string]string) {
	ns := s.namespace(p.id.Namespace)
	for _, c := range slices.Clone(*s.choices(p)) {
		s.part(c, p)
	}
	for k, v := range labels {
		ns.unindex(pair{k, v}, p)
	}
	ns.pods.remove(p)
	s.removeNamespace(ns)
}

// relabel updates the selection after a change of a pod's labels.
func (s *selection) relabel(p *pod, before, now map[string]string) {
	ns := s.namespace(p.id.Namespace)
	for k, v := range before {
		if w, has := now[k]; !has || v != w {
			ns.unindex(pair{k, v}, p)
		}
	}
	for k, v := range now {
		if w, had := before[k]; !had || v != w {
			ns.index(pair{k, v}, p)
		}
	}
	for _, c := range slices.Clone(*s.choices(p)) {
		if !c.selector.matches(now) {
			s.part(c, p)
		}
	}
	s.compare(ns, p, now)
}

func (ns *namespace) index(l pair, p *pod) {
	set := ns.byLabel[l]
	if set == nil {
		set = &podSet{}
		ns.byLabel[l] = set
	}
	set.add(p)
}

func (ns *namespace) unindex(l pair, p *pod) {
	if set := ns.byLabel[l]; set != nil {
		if set.remove(p); set.len() == 0 {
			delete(ns.byLabel, l)
		}
	}
}

// compare adds a pod to the choices that select it.
func (s *selection) compare(ns *namespace, p *pod, labels map[string]string) {
	for _, sc := range ns.scopes {
		for _, c := range sc.others {
			if c.selector.matches(labels) {
				s.join(c, p)
			}
		}
		if len(sc.byAnchor) == 0 {
			continue
		}
		for k, v := range labels {
			for _, c := range sc.byAnchor[pair{k, v}] {
				if c.selector.matches(labels) {
					s.join(c, p)
				}
			}
		}
	}
}

func (s *selection) join(c *choice, p *pod) {
	if c.pods.add(p) {
		list := s.choices(p)
		*list = append(*list, c)
		s.changed(c, p, true)
	}
}

func (s *selection) part(c *choice, p *pod) {
	if c.pods.remove(p) {
		s.leave(c, p)
		s.changed(c, p, false)
	}
}

func (s *selection) leave(c *choice, p *pod) {
	list := s.choices(p)
	*list = without(*list, c)
}
