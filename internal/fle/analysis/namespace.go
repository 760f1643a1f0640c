package analysis

import (
	"slices"
	"strings"

	"allium/bson"
)

// eligible are the commands that the analysis knows (client-side-encryption, "libmongocrypt: Auto
// encryption").
var eligible = words(`aggregate count distinct delete find findAndModify insert update create createIndexes explain collMod
	compactStructuredEncryptionData cleanupStructuredEncryptionData bulkWrite`)

// passed are the commands that hold no values of collections, and go out as they come.
var passed = words(`getMore authenticate getnonce logout hello isMaster ismaster abortTransaction commitTransaction endSessions startSession
	drop dropDatabase dropIndexes killCursors listCollections listDatabases listIndexes renameCollection ping saslStart saslContinue
	killAllSessions killAllSessionsByPattern killSessions refreshSessions buildInfo buildinfo getCmdLineOpts getLog createSearchIndexes
	listSearchIndexes dropSearchIndex updateSearchIndex serverStatus`)

// Namespaces returns the collections whose schemas the analysis of cmd needs, that of the command
// itself first. There are none for a command that goes out as it is. A command that cannot be
// analysed is an *Error.
func Namespaces(db string, cmd bson.Raw) ([]string, error) {
	name, target := first(cmd)
	if passed[name] {
		return nil, nil
	}
	fail := func(reason string) ([]string, error) {
		return nil, &Error{Command: name, Namespace: db, Reason: reason}
	}
	if err := cmd.Validate(); err != nil {
		return fail(err.Error())
	}
	if !eligible[name] {
		return nil, &Error{Namespace: db, Reason: "command not supported for auto encryption: " + name, Instead: "use a client without automatic encryption"}
	}
	if key := twice(cmd); key != "" {
		return fail("the command has the field '" + key + "' twice")
	}
	switch name {
	case "explain":
		inner, ok := target.Document()
		if !ok {
			return fail("explain wants a command")
		}
		if name, _ := first(inner); name == "explain" || !eligible[name] {
			return nil, &Error{Command: "explain", Namespace: db, Reason: "command not supported for auto encryption: " + name, Instead: "use a client without automatic encryption"}
		}
		return Namespaces(db, inner)
	case "bulkWrite":
		infos, ok := docs(cmd.Lookup("nsInfo"))
		if !ok || len(infos) == 0 {
			return fail("expected one namespace in `bulkWrite`, but found zero.")
		}
		if len(infos) > 1 {
			return fail("expected one namespace in `bulkWrite`, but found more than one. Only one namespace is supported.")
		}
		ns, ok := infos[0].Lookup("ns").StringValue()
		if !ok || twice(infos[0]) != "" || !strings.Contains(ns, ".") {
			return fail("bulkWrite wants a namespace, a string")
		}
		return []string{ns}, nil
	}
	coll, ok := target.StringValue()
	if !ok || coll == "" {
		return fail("non-collection command not supported for auto encryption: " + name)
	}
	out := []string{db + "." + coll}
	switch name {
	case "aggregate":
		return referenced(db, name, cmd.Lookup("pipeline"), out)
	case "create", "collMod":
		// A view's pipeline could hold values of the fields that it looks for.
		if view, ok := cmd.Lookup("viewOn").StringValue(); ok {
			return referenced(db, name, cmd.Lookup("pipeline"), add(out, db+"."+view))
		}
	}
	return out, nil
}

func add(list []string, ns string) []string {
	if slices.Contains(list, ns) {
		return list
	}
	return append(list, ns)
}

// referenced adds the collections that a pipeline reads or writes beside its own.
func referenced(db, command string, pipeline bson.RawValue, out []string) ([]string, error) {
	stages, _ := docs(pipeline)
	for _, doc := range stages {
		if twice(doc) != "" {
			return nil, &Error{Command: command, Namespace: out[0], Reason: "a stage must have one field"}
		}
		name, arg := first(doc)
		inner, _ := arg.Document()
		if key := twice(inner); key != "" && name != "$match" {
			return nil, &Error{Command: command, Namespace: out[0], Operator: name, Reason: "the field '" + key + "' is there twice"}
		}
		other, within := inner.Lookup("from"), []bson.RawValue{inner.Lookup("pipeline")}
		switch name {
		case "$lookup", "$graphLookup":
		case "$unionWith":
			if other = inner.Lookup("coll"); arg.Type == bson.TypeString {
				other = arg
			}
		case "$out", "$merge":
			if other = arg; !inner.Lookup("into").IsZero() {
				other = inner.Lookup("into")
			}
			within = nil
		case "$facet":
			within = nil
			for _, v := range inner.All() {
				within = append(within, v)
			}
		default:
			continue
		}
		if target, ok := other.Document(); ok {
			// Schemas of another database cannot be asked for along with this one's.
			if name, _ := target.Lookup("db").StringValue(); name != db {
				if _, computes := inner.Lookup("whenMatched").Array(); within == nil && !computes {
					continue // only whole documents go there
				}
				return nil, &Error{Command: command, Namespace: out[0], Operator: name,
					Reason: "Cannot request schemas for different databases. Requested schemas for '" + db + "' and '" + name + "'."}
			}
			other = target.Lookup("coll")
		}
		if coll, ok := other.StringValue(); ok {
			out = add(out, db+"."+coll)
		}
		for _, v := range within {
			var err error
			if out, err = referenced(db, command, v, out); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
