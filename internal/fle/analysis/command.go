package analysis

import (
	"strings"

	"allium/bson"
)

// generic are the fields that any command may have. None of them holds a value of a collection.
var generic = words(
	`$db lsid $clusterTime $readPreference readConcern writeConcern txnNumber autocommit startTransaction stmtId stmtIds maxTimeMS
	maxTimeMSOpTime comment apiVersion apiStrict apiDeprecationErrors hint rawData databaseVersion shardVersion $audit $client $configTime $topologyTime
	mayBypassWriteBlocking querySettings`)

// commandFuncs analyse one field each; what is in none of the maps is refused.
type fieldFunc func(a *analysis, v bson.RawValue) (bson.RawValue, error)

func kept(_ *analysis, v bson.RawValue) (bson.RawValue, error) { return v, nil }

// fieldsOf returns a map of fields that are kept as they are, and of some that are not.
func fieldsOf(names string, others map[string]fieldFunc) map[string]fieldFunc {
	out := map[string]fieldFunc{}
	for name := range words(names) {
		out[name] = kept
	}
	for name, f := range others {
		out[name] = f
	}
	return out
}

var commandFields map[string]map[string]fieldFunc

func init() {
	commandFields = map[string]map[string]fieldFunc{
		"find": fieldsOf(
			`find skip limit batchSize singleBatch returnKey showRecordId tailable oplogReplay noCursorTimeout awaitData allowPartialResults
			allowDiskUse collation`, map[string]fieldFunc{
				"filter": (*analysis).filter, "sort": (*analysis).sort, "projection": (*analysis).findProjection,
				"min": (*analysis).bounds,
				"max": (*analysis).bounds, "let": (*analysis).let,
			}),
		"aggregate": fieldsOf(`aggregate cursor explain allowDiskUse bypassDocumentValidation collation`,
			map[string]fieldFunc{
				"pipeline": (*analysis).commandPipeline, "let": (*analysis).let,
			}),
		"count": fieldsOf(`count limit skip fields collation`, map[string]fieldFunc{"query": (*analysis).filter}),
		"distinct": fieldsOf(`distinct collation`,
			map[string]fieldFunc{"query": (*analysis).filter, "key": (*analysis).distinctKey}),
		"insert": fieldsOf(`insert ordered bypassDocumentValidation bypassEmptyTsReplacement`,
			map[string]fieldFunc{"documents": (*analysis).documents}),
		"update": fieldsOf(`update ordered bypassDocumentValidation bypassEmptyTsReplacement`, map[string]fieldFunc{
			"updates": (*analysis).updates, "let": (*analysis).let,
		}),
		"delete": fieldsOf(`delete ordered`,
			map[string]fieldFunc{"deletes": (*analysis).deletes, "let": (*analysis).let}),
		"findAndModify": fieldsOf(`findAndModify remove bypassDocumentValidation bypassEmptyTsReplacement collation`,
			map[string]fieldFunc{
				"query": (*analysis).filter, "sort": (*analysis).sort, "update": (*analysis).modification,
				"upsert": (*analysis).upsert,
				"new":    (*analysis).returnNew,
				"fields": (*analysis).modifyProjection, "projection": (*analysis).modifyProjection,
				"arrayFilters": (*analysis).arrayFilters,
				"let":          (*analysis).let,
			}),
		"bulkWrite": fieldsOf(
			`bulkWrite ordered bypassDocumentValidation bypassEmptyTsReplacement errorsOnly cursor nsInfo`,
			map[string]fieldFunc{
				"ops": (*analysis).bulkOps, "let": (*analysis).let,
			}),
		"create": fieldsOf(
			`create capped autoIndexId idIndex size max storageEngine validationLevel validationAction indexOptionDefaults viewOn collation
			timeseries expireAfterSeconds clusteredIndex changeStreamPreAndPostImages encryptedFields flags`,
			map[string]fieldFunc{
				"validator": (*analysis).validator, "pipeline": (*analysis).viewPipeline,
			}),
		"collMod": fieldsOf(
			`collMod index validationLevel validationAction viewOn cappedSize cappedMax expireAfterSeconds timeseries
			changeStreamPreAndPostImages dryRun recordPreImages encryptedFields`, map[string]fieldFunc{
				"validator": (*analysis).validator, "pipeline": (*analysis).viewPipeline,
			}),
		"createIndexes": fieldsOf(`createIndexes commitQuorum ignoreUnknownIndexOptions`,
			map[string]fieldFunc{"indexes": (*analysis).indexes}),
	}
}

// run analyses a command.
func (a *analysis) run(cmd bson.Raw) (bson.Raw, error) {
	name, _ := first(cmd)
	switch name {
	case "compactStructuredEncryptionData", "cleanupStructuredEncryptionData":
		return cmd, nil
	case "explain":
		return a.explain(cmd)
	}
	a.cmd = cmd
	fields := commandFields[name]
	seen := map[string]bool{}
	// Variables and collations concern what other fields hold, whatever their order.
	if doc, ok := cmd.Lookup("let").Document(); ok {
		a.variable = map[string]bool{}
		for name := range doc.All() {
			a.variable[name] = true
		}
	}
	out, err := rewrite(cmd, func(key string, v bson.RawValue) (bson.RawValue, error) {
		if seen[key] {
			return v, a.refuse("", key, "the command has the field twice", "")
		}
		seen[key] = true
		f := fields[key]
		if f == nil {
			if generic[key] {
				return v, nil
			}
			return v, a.refuse("", key, "Unsupported field of a command for encryption", "")
		}
		a.place = key
		return f(a, v)
	})
	if err != nil {
		return nil, err
	}
	if err := a.collation(cmd.Lookup("collation")); err != nil {
		return nil, err
	}
	if name == "aggregate" && !seen["cursor"] && !seen["explain"] {
		out = appendField(out, "cursor", document(emptyDocument()))
	}
	return out, nil
}

func emptyDocument() bson.Raw {
	start, b := bson.BeginDocument(nil)
	return bson.EndDocument(b, start)
}

// appendField returns doc with one more field.
func appendField(doc bson.Raw, key string, v bson.RawValue) bson.Raw {
	start, b := bson.BeginDocument(nil)
	b = append(b, doc.Elements()...)
	return bson.EndDocument(bson.AppendRawValue(b, key, v), start)
}

func (a *analysis) explain(cmd bson.Raw) (bson.Raw, error) {
	if err := a.unique(cmd, ""); err != nil {
		return nil, err
	}
	verbosity := false
	out, err := rewrite(cmd, func(key string, v bson.RawValue) (bson.RawValue, error) {
		switch {
		case key == "explain":
			inner, err := a.run(v.Value)
			return document(inner), err
		case key == "verbosity":
			verbosity = true
			return v, nil
		case generic[key]:
			return v, nil
		}
		return v, a.refuse("", key, "Unsupported field of a command for encryption", "")
	})
	if err == nil && !verbosity {
		out = appendField(out, "verbosity", stringValue("allPlansExecution"))
	}
	return out, err
}

func (a *analysis) filter(v bson.RawValue) (bson.RawValue, error) {
	doc, ok := v.Document()
	if !ok {
		if v.Type == bson.TypeNull {
			return v, nil
		}
		return v, a.refuse("", "", "a filter must be a document", "")
	}
	out, err := a.match(doc, a.root())
	return document(out), err
}

func (a *analysis) sort(v bson.RawValue) (bson.RawValue, error) {
	return v, a.sortKeys(v, a.root(), "sort")
}

// bounds analyses min and max of find, which hold the values of index keys.
func (a *analysis) bounds(v bson.RawValue) (bson.RawValue, error) {
	doc, ok := v.Document()
	if !ok {
		return v, a.refuse("", a.place, "the field must be a document", "")
	}
	for path := range doc.All() {
		found, err := a.at(a.root(), path, a.place)
		if err == nil && found != nil {
			err = a.refuse(path, a.place, "the bounds of an index cannot concern an encrypted field", "use a filter")
		}
		if err != nil {
			return v, err
		}
	}
	return v, nil
}

// let analyses the variables of a command. They are constants, and cannot be compared with
// encrypted fields.
func (a *analysis) let(v bson.RawValue) (bson.RawValue, error) {
	doc, ok := v.Document()
	if !ok {
		return v, a.refuse("", "let", "the field must be a document", "")
	}
	for name := range doc.All() {
		if name == "CURRENT" || name == "ROOT" {
			return v, a.refuse("", "let", "the variable '"+name+"' cannot be given another value", "")
		}
	}
	return v, nil
}

func (a *analysis) findProjection(v bson.RawValue) (bson.RawValue, error) {
	doc, ok := v.Document()
	if !ok {
		return v, a.refuse("", "projection", "the field must be a document", "")
	}
	n := a.root()
	s := &stage{analysis: a, name: "projection", in: n, scope: scope{root: n, current: n}}
	a.computes = true
	defer func() { a.computes = false }()
	out, _, err := s.projection(doc, "", true)
	return document(out), err
}

func (a *analysis) modifyProjection(v bson.RawValue) (bson.RawValue, error) {
	if a.queryable {
		return v, a.refuse("", a.place, "findAndModify cannot have a projection with Queryable Encryption",
			"project after the document has come back")
	}
	return a.findProjection(v)
}

func (a *analysis) returnNew(v bson.RawValue) (bson.RawValue, error) {
	if a.queryable && v.AsBool() {
		return v, a.refuse("", "new", "findAndModify with encryption only supports new: false",
			"read the document afterwards")
	}
	return v, nil
}

func (a *analysis) modification(v bson.RawValue) (bson.RawValue, error) { return a.updated(v) }

// arrayFilters analyses filters on elements of arrays. Those are never encrypted: updatePath
// refuses it.
func (a *analysis) arrayFilters(v bson.RawValue) (bson.RawValue, error) {
	list, ok := docs(v)
	if !ok {
		return v, a.refuse("", "arrayFilters", "the field must be an array of documents", "")
	}
	m := matcher{analysis: a, nested: true}
	for _, doc := range list {
		if _, err := m.document(doc, nil); err != nil {
			return v, err
		}
	}
	return v, nil
}

func (a *analysis) distinctKey(v bson.RawValue) (bson.RawValue, error) {
	path, ok := v.StringValue()
	if !ok {
		return v, a.refuse("", "distinct", "'key' must be a string", "")
	}
	found, err := a.at(a.root(), path, "distinct")
	if err != nil || found == nil {
		return v, err
	}
	if err := a.comparing(path, "distinct"); err != nil {
		return v, err
	}
	switch {
	case found.enc == nil:
		return v, a.refuse(path, "distinct", "The distinct key is not allowed to have encrypted fields below it", "")
	case found.enc.KeyPointer != "":
		return v, a.refuse(path, "distinct",
			"The distinct key is not allowed to be marked for encryption with a non-UUID keyId", "")
	case found.enc.Kind != Deterministic:
		return v, a.refuse(path, "distinct", "The distinct key is not allowed to be encrypted with the "+
			found.enc.Kind.String()+" algorithm", "encrypt it deterministically")
	}
	return v, nil
}

// each analyses every document of the array v; f sets the place.
func (a *analysis) eachDocument(v bson.RawValue, f func(doc bson.Raw) (bson.Raw, error)) (bson.RawValue, error) {
	list, ok := docs(v)
	place := a.place
	if !ok {
		return v, a.refuse("", place, "the field must be an array of documents", "")
	}
	out := make([]bson.RawValue, len(list))
	for i, doc := range list {
		a.place = join(place, index(i))
		doc, err := f(doc)
		if err != nil {
			return v, err
		}
		out[i] = document(doc)
	}
	a.place = place
	return array(out), nil
}

func (a *analysis) documents(v bson.RawValue) (bson.RawValue, error) {
	return a.eachDocument(v, a.inserted)
}

// statement analyses one statement of a write command: f is called for each of its fields.
func (a *analysis) statement(doc bson.Raw,
	f func(key string, v bson.RawValue) (bson.RawValue, error)) (bson.Raw, error) {
	compares := a.compares
	a.compares = false
	seen := map[string]bool{}
	place := a.place
	out, err := rewrite(doc, func(key string, v bson.RawValue) (bson.RawValue, error) {
		if seen[key] {
			return v, a.refuse("", key, "the statement has the field twice", "")
		}
		seen[key] = true
		a.place = join(place, key)
		return f(key, v)
	})
	a.place = place
	if err == nil {
		err = a.collation(doc.Lookup("collation"))
	}
	a.compares = a.compares || compares
	return out, err
}

func (a *analysis) unknown(key string) error {
	return a.refuse("", key, "Unsupported field of a statement for encryption", "")
}

// alone refuses several statements in one command: servers take only one with Queryable Encryption,
// since state collections change along with the document.
func (a *analysis) alone(v bson.RawValue, what string) error {
	if list, ok := docs(v); ok && a.queryable && len(list) > 1 {
		return a.refuse("", "", "Only single document "+what+" are permitted in a command with Queryable Encryption",
			"send them one by one")
	}
	return nil
}

func (a *analysis) updates(v bson.RawValue) (bson.RawValue, error) {
	if err := a.alone(v, "updates"); err != nil {
		return v, err
	}
	return a.eachDocument(v, func(doc bson.Raw) (bson.Raw, error) {
		if err := a.multi(doc); err != nil {
			return nil, err
		}
		if err := a.upserted(doc.Lookup("upsert"), doc.Lookup("q"), doc.Lookup("u")); err != nil {
			return nil, err
		}
		out, err := a.statement(doc, func(key string, v bson.RawValue) (bson.RawValue, error) {
			switch key {
			case "q":
				return a.filter(v)
			case "u":
				return a.updated(v)
			case "arrayFilters":
				return a.arrayFilters(v)
			case "sort":
				return a.sort(v)
			case "multi", "upsert", "collation", "hint", "sampleId", "upsertSupplied":
				return v, nil
			}
			return v, a.unknown(key)
		})
		if err != nil {
			return nil, err
		}
		for _, key := range []string{"multi", "upsert"} {
			if doc.Lookup(key).IsZero() {
				out = appendField(out, key, boolValue(false))
			}
		}
		return out, nil
	})
}

// multi refuses an update that may change more than one document, also if it changes none of the
// encrypted fields: servers do. Deletes of several documents are allowed.
func (a *analysis) multi(statement bson.Raw) error {
	if a.queryable && statement.Lookup("multi").AsBool() {
		return a.refuse("", "", "Multi-document updates are not allowed with Queryable Encryption",
			"change one document at a time")
	}
	return nil
}

// upsert analyses that field of findAndModify.
func (a *analysis) upsert(v bson.RawValue) (bson.RawValue, error) {
	return v, a.upserted(v, a.cmd.Lookup("query"), a.cmd.Lookup("update"))
}

// upserted refuses an upsert that would insert a document without an encrypted field that its
// filter has: servers look for tags instead of the value, and do not know it.
func (a *analysis) upserted(upsert, filter, update bson.RawValue) error {
	if !a.queryable || !upsert.AsBool() {
		return nil
	}
	doc, _ := filter.Document()
	set, _ := update.Document()
	for _, path := range equalities(doc, nil) {
		if found, below := a.root().at(path); found != nil && !below && !sets(set, path) {
			return a.refuse(path, "upsert", "the document that an upsert inserts would lack the encrypted field that the filter compares", "set the field in the update too")
		}
	}
	return nil
}

// equalities appends the paths that a filter compares with one value, which an upsert sets.
func equalities(filter bson.Raw, paths []string) []string {
	for key, v := range filter.All() {
		list, _ := docs(v)
		inner, _ := v.Document()
		switch {
		case key == "$and":
			for _, doc := range list {
				paths = equalities(doc, paths)
			}
		case !strings.HasPrefix(key, "$") && (!isOperator(v) || !inner.Lookup("$eq").IsZero() ||
			!inner.Lookup("$in").IsZero() || !inner.Lookup("$all").IsZero()):
			paths = append(paths, key)
		}
	}
	return paths
}

// sets reports whether an update, a replacement or operators, gives the field at path a value.
func sets(update bson.Raw, path string) bool {
	if name, _ := first(update); !strings.HasPrefix(name, "$") {
		return !update.Lookup(strings.Split(path, ".")...).IsZero()
	}
	fields, _ := update.Lookup("$set").Document()
	for key, v := range fields.All() {
		below, ok := strings.CutPrefix(path, key+".")
		if inner, isDocument := v.Document(); key == path ||
			ok && isDocument && !inner.Lookup(strings.Split(below, ".")...).IsZero() {
			return true
		}
	}
	return false
}

func (a *analysis) deletes(v bson.RawValue) (bson.RawValue, error) {
	if err := a.alone(v, "deletes"); err != nil {
		return v, err
	}
	return a.eachDocument(v, func(doc bson.Raw) (bson.Raw, error) {
		return a.statement(doc, func(key string, v bson.RawValue) (bson.RawValue, error) {
			switch key {
			case "q":
				return a.filter(v)
			case "limit", "collation", "hint", "sampleId":
				return v, nil
			}
			return v, a.unknown(key)
		})
	})
}

func (a *analysis) bulkOps(v bson.RawValue) (bson.RawValue, error) {
	list, _ := docs(v)
	return a.eachDocument(v, func(doc bson.Raw) (bson.Raw, error) {
		name, _ := first(doc)
		if a.queryable && len(list) > 1 && name != "insert" {
			return nil, a.refuse(
				"", "", "Only insert is supported in BulkWrite with multiple operations and Queryable Encryption",
				"send updates and deletes one by one")
		}
		if !strings.Contains(" insert update delete ", " "+name+" ") {
			return nil, a.unknown(name)
		}
		if name == "update" {
			if err := a.multi(doc); err != nil {
				return nil, err
			}
			if err := a.upserted(doc.Lookup("upsert"), doc.Lookup("filter"), doc.Lookup("updateMods")); err != nil {
				return nil, err
			}
		}
		return a.statement(doc, func(key string, v bson.RawValue) (bson.RawValue, error) {
			switch {
			case key == name:
				return v, nil
			case key == "document" && name == "insert":
				inserted, ok := v.Document()
				if !ok {
					return v, a.refuse("", key, "the field must be a document", "")
				}
				out, err := a.inserted(inserted)
				return document(out), err
			case name == "insert":
				return v, a.unknown(key)
			case key == "filter":
				return a.filter(v)
			case key == "multi" || key == "collation" || key == "hint":
				return v, nil
			case name == "delete":
				return v, a.unknown(key)
			case key == "updateMods":
				return a.updated(v)
			case key == "arrayFilters":
				return a.arrayFilters(v)
			case key == "sort":
				return a.sort(v)
			case key == "upsert" || key == "upsertSupplied":
				return v, nil
			}
			return v, a.unknown(key)
		})
	})
}

// validator analyses a validator, or the filter of a partial index.
func (a *analysis) validator(v bson.RawValue) (bson.RawValue, error) {
	doc, ok := v.Document()
	if !ok {
		return v, a.refuse("", a.place, "the field must be a document", "")
	}
	a.forbid = true
	defer func() { a.forbid = false }()
	_, err := a.match(doc, a.root())
	return v, err
}

// viewPipeline allows a view on a collection with encrypted fields only without stages: what they
// compare would be in plaintext on the server, and automatic encryption does not read views.
func (a *analysis) viewPipeline(v bson.RawValue) (bson.RawValue, error) {
	list, ok := v.Array()
	if ok && list.IsEmpty() {
		return v, nil
	}
	return v, a.refuse("", "pipeline", "a view with stages on collections with encrypted fields is not supported",
		"automatic encryption cannot read views")
}

func (a *analysis) indexes(v bson.RawValue) (bson.RawValue, error) {
	return a.eachDocument(v, func(doc bson.Raw) (bson.Raw, error) {
		for key, v := range doc.All() {
			switch key {
			case "key":
				if err := a.indexKey(v); err != nil {
					return nil, err
				}
			case "partialFilterExpression":
				if _, err := a.validator(v); err != nil {
					return nil, err
				}
			}
		}
		return doc, nil
	})
}

func (a *analysis) indexKey(v bson.RawValue) error {
	doc, ok := v.Document()
	if !ok {
		return a.refuse("", "createIndexes", "'key' must be a document", "")
	}
	n := a.root()
	for path, order := range doc.All() {
		if path == "$**" || strings.HasSuffix(path, ".$**") {
			found, err := a.at(n, strings.TrimSuffix(strings.TrimSuffix(path, "$**"), "."), "createIndexes")
			if path == "$**" {
				found = n
			}
			if err != nil {
				return err
			}
			if found != nil {
				return a.refuse(path, "createIndexes", "a wildcard index cannot have encrypted fields",
					"name the fields")
			}
			continue
		}
		found, err := a.at(n, path, "createIndexes")
		if err != nil {
			return err
		}
		if found == nil {
			continue
		}
		if !found.deterministic() {
			return a.refuse(path, "createIndexes",
				"an index on a field that is encrypted with a randomized algorithm is not supported",
				"Queryable Encryption has an index of its own, on "+safeContent)
		}
		if text, ok := order.StringValue(); ok && text != "hashed" {
			return a.refuse(path, "createIndexes", "an index of type "+text+" on an encrypted field is not supported",
				"use 1, -1 or \"hashed\"")
		}
	}
	return nil
}

func (a *analysis) commandPipeline(v bson.RawValue) (bson.RawValue, error) {
	out, _, err := a.pipeline(v, a.root(), nil)
	return out, err
}
