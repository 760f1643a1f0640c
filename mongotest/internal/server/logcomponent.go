package server

import (
	"math"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

// LogVerbosity is the parameter that has the verbosity of every component of the log, as a tree.
// At its top is logLevel.
const LogVerbosity = "logComponentVerbosity"

// logComponents are the settings systemLog.component of the manual, with those below them.
var logComponents = []struct {
	name  string
	below []string
}{
	{name: "accessControl"}, {name: "command"}, {name: "control"}, {name: "ftdc"}, {name: "geo"}, {name: "index"},
	{"network", []string{"asio"}}, {name: "query"},
	{"replication", []string{"election", "heartbeats", "initialSync", "rollback"}}, {name: "sharding"},
	{"storage", []string{"journal", "recovery", "wt"}}, {name: "transaction"}, {name: "write"},
}

const (
	inherited     = -1 // the verbosity of the component above
	mostVerbosity = 5
)

// logVerbosity returns the value of LogVerbosity. The node's mutex is held.
func (n *Node) logVerbosity() bson.RawValue {
	level := func(d *bsondoc.Builder, path string) {
		v, ok := n.verbosity[path]
		if !ok {
			v = inherited
		}
		d.B = bson.AppendInt32(d.B, "verbosity", v)
	}
	return bsondoc.DocumentValue(bsondoc.Build(func(d *bsondoc.Builder) {
		top, ok := n.params["logLevel"]
		if !ok {
			top = Parameters["logLevel"]
		}
		d.Value("verbosity", top.Type, top.Value)
		for _, c := range logComponents {
			d.Doc(c.name, bsondoc.Build(func(d *bsondoc.Builder) {
				level(d, c.name)
				for _, sub := range c.below {
					d.Doc(sub, bsondoc.Build(func(d *bsondoc.Builder) { level(d, c.name+"."+sub) }))
				}
			}))
		}
	}))
}

// SetLogVerbosity sets the components that a tree names, and leaves the others. A component is a
// number or a document with its verbosity and the components below it.
func (n *Node) SetLogVerbosity(v bson.RawValue) error {
	tree, ok := v.Document()
	if !ok {
		return srverr.New(srverr.TypeMismatch, "log component verbosity is not a BSON object: %s", v)
	}
	set := map[string]int32{}
	if err := readVerbosity(tree, "", set); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.verbosity == nil {
		n.verbosity = map[string]int32{}
	}
	if n.params == nil {
		n.params = map[string]bson.RawValue{}
	}
	for path, level := range set {
		if path == "" {
			n.params["logLevel"] = bsondoc.Int32Value(max(level, 0))
		} else {
			n.verbosity[path] = level
		}
	}
	return nil
}

func readVerbosity(tree bson.Raw, path string, set map[string]int32) error {
	for k, v := range tree.All() {
		at := k
		if path != "" {
			at = path + "." + k
		}
		switch {
		case k == "verbosity":
			at = path
		case !isLogComponent(at):
			return srverr.New(srverr.BadValue, "Invalid component name %s", at)
		case v.Type == bson.TypeEmbeddedDocument:
			if err := readVerbosity(bson.Raw(v.Value), at, set); err != nil {
				return err
			}
			continue
		}
		level, ok := args.NumberOf(v)
		if f, isDouble := v.Double(); !ok || isDouble && math.IsNaN(f) {
			return srverr.New(srverr.BadValue, "Expected %s.verbosity to be a number", at)
		}
		if level < inherited || level > mostVerbosity {
			return srverr.New(srverr.BadValue, "Verbosity of %s is out of its bounds", at)
		}
		set[string([]byte(at))] = int32(level)
	}
	return nil
}

func isLogComponent(path string) bool {
	for _, c := range logComponents {
		if path == c.name {
			return true
		}
		for _, sub := range c.below {
			if path == c.name+"."+sub {
				return true
			}
		}
	}
	return false
}
