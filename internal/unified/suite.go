package unified

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"

	"allium/internal/spantest"
)

// Outcome is what became of one test on one deployment.
type Outcome struct {
	Suite, File, Test string
	Target            Target // zero if the test runs on none
	Skip              string // why it did not run, "" if it did
	Err               error  // why it failed, nil if it passed
	Note              string // what is not as the test has it, "" if all is
}

// NotKnown reports whether the test failed because the runner does not know something that it asks
// for.
func (o *Outcome) NotKnown() bool {
	var b *brokenTest
	return errors.As(o.Err, &b)
}

// Where says what deployments tests run against. The zero value is mongotest at the newest version
// that a test allows.
type Where struct {
	// On is a running deployment. All tests run against it, in real time.
	On *Deployment
	// Server is a server version of mongotest, as in "4.4" (its last patch level) or "4.4.0".
	Server string
	// Serverless runs the tests with the settings of the specification Atlas Serverless Tests: one
	// mongos behind a load balancer, with TLS, compression, authentication and the Stable API.
	Serverless bool
	// RequireAPI runs the tests as the specification Stable API asks for: on a standalone server
	// from 5.0 on that has requireApiVersion set and wants authentication, with clients that
	// declare the version.
	RequireAPI bool
	// Single runs each test on one of the targets that it allows, not always the same one: enough
	// for a look at the runner and the driver that takes a third of the time.
	Single bool
	// Spans makes what collects the spans of a client; nil: a spantest.Recorder. It does not apply
	// to On.
	Spans func() spantest.Source
}

// lakeSuite are the tests of Atlas Data Lake, which is a deployment of its own.
const lakeSuite = "atlas-data-lake-testing/tests/unified"

// notServerless are the suites that a serverless deployment is not tested with.
var notServerless = map[string]string{
	"change-streams/tests/unified": "a serverless deployment has no change streams",
	lakeSuite:                      "needs Atlas Data Lake",
}

// targets returns what a test of a suite runs against; if that is nothing, skip says why.
func (w Where) targets(suite string, f *File, test *Test) (targets []Target, skip string) {
	switch {
	case w.Serverless && notServerless[suite] != "":
		return nil, notServerless[suite]
	case suite == lakeSuite:
		versions := candidates(nil, w.Server)
		return []Target{{Topology: dataLake, Version: versions[0], Auth: true}}, ""
	case w.Serverless:
		return targetsLike(Target{Topology: "load-balanced", Auth: true, Serverless: true}, f, test, w.Server)
	case w.RequireAPI:
		return targetsLike(Target{Topology: "single", Auth: true, RequireAPI: true}, f, test, w.Server)
	}
	return Targets(f, test, w.Server)
}

// RunFile runs the tests of a file and hands every outcome to report. Unless where names a running
// deployment, each test runs on every topology that it allows, against a deployment of its own in a
// testing/synctest bubble: no time is waited for, and the machine's load does not matter. A file
// that cannot be read is an outcome of its own.
func RunFile(t *testing.T, where Where, suite, path string, report func(Outcome)) {
	name := strings.TrimSuffix(filepath.Base(path), ".json")
	f, err := Load(path)
	if err != nil {
		report(Outcome{Suite: suite, File: name, Err: err})
		return
	}
	for i := range f.Tests {
		test := &f.Tests[i]
		o := Outcome{Suite: suite, File: name, Test: test.Description, Note: f.note}
		if on := where.On; on != nil {
			o.Target = on.Target
			switch lake := suite == lakeSuite; {
			case lake && on.Topology != dataLake:
				o.Skip = "needs Atlas Data Lake"
			case !lake && on.Topology == dataLake:
				o.Skip = "needs a deployment that can be written to"
			default:
				o.Skip, o.Err = Run(on, f, test)
			}
			report(o)
			continue
		}
		targets, skip := where.targets(suite, f, test)
		if len(targets) == 0 {
			o.Skip = skip
			report(o)
		}
		if where.Single && len(targets) > 1 {
			h := fnv.New32a()
			io.WriteString(h, name+test.Description)
			n := int(h.Sum32() % uint32(len(targets)))
			targets = targets[n : n+1]
		}
		for _, o.Target = range targets {
			o.Skip, o.Err = where.runInBubble(t, o.Target, f, test)
			report(o)
		}
	}
}

// runInBubble runs a test against a deployment of its own, on the clock of a bubble.
func (w Where) runInBubble(t *testing.T, target Target, f *File, test *Test) (skip string, err error) {
	defer func() {
		if p := recover(); p != nil { // something has not ended after everything was closed
			err = fmt.Errorf("%v (after: %w)", p, err)
		}
	}()
	keyServices() // not in the bubble, which they outlive
	synctest.Test(t, func(*testing.T) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		var d *Deployment
		if d, err = Start(target, true); err != nil {
			return
		}
		defer d.Stop()
		d.settle, d.spans = synctest.Wait, w.Spans
		skip, err = Run(d, f, test)
	})
	return skip, err
}
