package unified

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
)

// Outcome is what became of one test on one topology.
type Outcome struct {
	Suite, File, Topology, Test string
	Skip                        string // why it did not run, "" if it did
	Err                         error  // why it failed, nil if it passed
}

// NotKnown reports whether the test failed because the runner does not know something that it asks for.
func (o *Outcome) NotKnown() bool {
	var b *brokenTest
	return errors.As(o.Err, &b)
}

// Topologies are the topologies that tests run on.
var Topologies = []string{"single", "replicaset", "sharded", "load-balanced"}

// Pool lends deployments to tests that run side by side: tests wait more than they work, for the checks of servers that
// failed, which are at least half a second apart.
type Pool struct {
	Version string
	mu      sync.Mutex
	idle    map[string][]*Deployment
	all     []*Deployment
}

// Borrow returns a deployment that nobody uses; giveBack makes it available again.
func (p *Pool) Borrow(topology string) (d *Deployment, giveBack func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if idle := p.idle[topology]; len(idle) > 0 {
		d = idle[len(idle)-1]
		p.idle[topology] = idle[:len(idle)-1]
	} else {
		if d, err = Start(topology, p.Version); err != nil {
			return nil, nil, err
		}
		p.all = append(p.all, d)
	}
	return d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.idle == nil {
			p.idle = map[string][]*Deployment{}
		}
		p.idle[topology] = append(p.idle[topology], d)
	}, nil
}

// Close stops all deployments.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.all {
		d.Stop()
	}
	p.all, p.idle = nil, nil
}

// RunFile runs the tests of a file on all topologies, at most parallel at a time, and hands every outcome to report, one at a
// time. A file that cannot be read is an outcome of its own.
func RunFile(p *Pool, suite, path string, parallel int, report func(Outcome)) {
	name := strings.TrimSuffix(filepath.Base(path), ".json")
	f, err := Load(path)
	if err != nil {
		report(Outcome{Suite: suite, File: name, Err: err})
		return
	}
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		slots = make(chan struct{}, parallel)
	)
	for _, topology := range Topologies {
		for i := range f.Tests {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				o := Outcome{Suite: suite, File: name, Topology: topology, Test: f.Tests[i].Description}
				d, giveBack, err := p.Borrow(topology)
				if err != nil {
					o.Err = err
				} else {
					o.Skip, o.Err = Run(d, f, &f.Tests[i])
					giveBack()
				}
				mu.Lock()
				defer mu.Unlock()
				report(o)
			})
		}
	}
	wg.Wait()
}
