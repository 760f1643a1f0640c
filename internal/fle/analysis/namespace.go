package analysis

import (
	"slices"
	"strings"

	"allium/bson"
)

// eligible are the commands that the analysis knows (client-side-encryption, "libmongocrypt: Auto
// encryption").
var eligible = words(
	`aggregate count distinct delete find findAndModify insert update create createIndexes explain collMod
	compactStructuredEncryptionData cleanupStructuredEncryptionData bulkWrite`)

// passed are the commands that hold no values of collections, and go out as they come.
var passed = words(
	`getMore authenticate getnonce logout hello isMaster ismaster abortTransaction commitTransaction endSessions startSession
	drop dropDatabase dropIndexes killCursors listCollections listDatabases listIndexes renameCollection ping saslStart saslContinue
	killAllSessions killAllSessionsByPattern killSessions refreshSessions buildInfo buildinfo getCmdLineOpts getLog createSearchIndexes
	listSearchIndexes dropSearchIndex updateSearchIndex serverStatus`)

// bypassing is what works for commands that this package does not know.
const bypassing = "use a client with BypassEncryption: it decrypts what comes back"

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
		return nil, &Error{Namespace: db, Reason: "command not supported for auto encryption: " + name,
			Instead: bypassing}
	}
	if key := twice(cmd); key != "" {
		return fail("the command has the field '" + key + "' twice")
	}
	if v := cmd.Lookup("$db"); !v.IsZero() {
		if name, _ := v.StringValue(); name != db {
			return fail("the command says another database in '$db'")
		}
	}
	switch name {
	case "explain":
		inner, ok := target.Document()
		if !ok {
			return fail("explain wants a command")
		}
		if name, _ := first(inner); name == "explain" || !eligible[name] {
			return nil, &Error{Command: "explain", Namespace: db,
				Reason: "command not supported for auto encryption: " + name, Instead: bypassing}
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
		return nil, &Error{Command: name, Namespace: db,
			Reason: "non-collection command not supported for auto encryption: " + name, Instead: bypassing}
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

// reach collects the collections that a pipeline reads or writes beside its own, of whatever
// database: values could be sent to any of them.
type reach struct {
	command string
	out     []string // the command's own collection first
}

// referenced adds the collections of a pipeline to out.
func referenced(db, command string, pipeline bson.RawValue, out []string) ([]string, error) {
	r := &reach{command, out}
	err := r.pipeline([]string{db}, pipeline)
	return r.out, err
}

func (r *reach) refuse(operator, reason string) error {
	return &Error{Command: r.command, Namespace: r.out[0], Operator: operator, Reason: reason}
}

// pipeline adds the collections of stages. A collection that is named without its database is one
// of dbs: it is not known of which.
func (r *reach) pipeline(dbs []string, stages bson.RawValue) error {
	list, _ := docs(stages)
	for _, doc := range list {
		if twice(doc) != "" {
			return r.refuse("", "a stage must have one field")
		}
		name, arg := first(doc)
		if !strings.HasPrefix(name, "$") {
			arg = document(doc) // no stage, but it is not known what it is instead
		}
		if err := r.stage(dbs, name, arg); err != nil {
			return err
		}
	}
	return nil
}

func (r *reach) stage(dbs []string, name string, arg bson.RawValue) error {
	inner, _ := arg.Document()
	if key := twice(inner); key != "" && name != "$match" {
		return r.refuse(name, "the field '"+key+"' is there twice")
	}
	other := bson.RawValue{}
	switch name {
	case "$lookup", "$graphLookup":
		other = inner.Lookup("from")
	case "$unionWith":
		other = arg
	case "$out", "$merge":
		if other = inner.Lookup("into"); other.IsZero() {
			other = arg
		}
	case "$facet":
	default:
		if _, known := stageFuncs[name]; known {
			return nil // it has no pipeline in it
		}
	}
	dbs, err := r.target(dbs, name, other)
	if err != nil {
		return err
	}
	return r.within(dbs, arg)
}

// target adds the collection that v names. It returns dbs with the database that v names, which a
// pipeline within the stage may run in.
func (r *reach) target(dbs []string, stage string, v bson.RawValue) ([]string, error) {
	coll, named := v.StringValue()
	if doc, ok := v.Document(); ok {
		if key := twice(doc); key != "" {
			return dbs, r.refuse(stage, "the field '"+key+"' is there twice")
		}
		if cluster := doc.Lookup("atlas"); !cluster.IsZero() { // Atlas Data Federation
			return r.target(dbs, stage, cluster)
		}
		coll, named = doc.Lookup("coll").StringValue()
		if !named && (stage == "$out" || stage == "$merge") {
			return dbs, r.refuse(stage,
				"the target is not understood: want the name of a collection, or 'db' and 'coll'")
		}
		if db, ok := doc.Lookup("db").StringValue(); ok {
			if named {
				r.out = add(r.out, db+"."+coll)
			}
			return add(slices.Clone(dbs), db), nil
		}
	}
	if named {
		for _, db := range dbs {
			r.out = add(r.out, db+"."+coll)
		}
	}
	return dbs, nil
}

// within adds the collections of every pipeline in v: of each array of documents, at whatever
// depth.
func (r *reach) within(dbs []string, v bson.RawValue) error {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return nil
	}
	if _, ok := docs(v); ok {
		return r.pipeline(dbs, v)
	}
	for v := range bson.Raw(v.Value).Values() {
		if err := r.within(dbs, v); err != nil {
			return err
		}
	}
	return nil
}
