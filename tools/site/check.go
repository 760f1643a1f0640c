package main

import (
	"fmt"
	"net/url"
	"path"
)

// check returns the links of pages that lead nowhere: to a file that there is not, or to an anchor
// that its page does not have.
func (s *site) check() (problems []error) {
	byName := map[string]*page{}
	for _, p := range s.byPath {
		byName[p.name] = p
	}
	for _, p := range s.byPath {
		for _, to := range p.links {
			u, err := url.Parse(to)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", p.path, err))
				continue
			}
			name := p.name
			if u.Path != "" {
				name = path.Join(path.Dir(p.name), u.Path)
			}
			switch other := byName[name]; {
			case other == nil:
				problems = append(problems, fmt.Errorf("%s: there is no %s", p.path, to))
			case u.Fragment != "" && !other.ids[u.Fragment]:
				problems = append(problems, fmt.Errorf("%s: %s has no section %q", p.path, other.path, u.Fragment))
			}
		}
	}
	return problems
}
