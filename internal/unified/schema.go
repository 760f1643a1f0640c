package unified

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"allium/bson"
)

// This file is the form of test files, as far as it does not depend on what operations there are.
// check refuses what is not of that form: files that the format calls invalid.

// A shape says what is wrong with a value; path is where it is.
type shape func(path string, v bson.RawValue) error

func wrong(path, want string, v bson.RawValue) error {
	return fmt.Errorf("%s is %v, want %s", path, v, want)
}

func anything(string, bson.RawValue) error { return nil }

func document(path string, v bson.RawValue) error {
	if v.Type != bson.TypeEmbeddedDocument {
		return wrong(path, "an object", v)
	}
	return nil
}

func text(path string, v bson.RawValue) error {
	if v.Type != bson.TypeString {
		return wrong(path, "a string", v)
	}
	return nil
}

func boolean(path string, v bson.RawValue) error {
	if v.Type != bson.TypeBoolean {
		return wrong(path, "a boolean", v)
	}
	return nil
}

func integer(path string, v bson.RawValue) error {
	if v.Type != bson.TypeInt32 && v.Type != bson.TypeInt64 {
		return wrong(path, "an integer", v)
	}
	return nil
}

// oneOf is a string out of a list.
func oneOf(words ...string) shape {
	return func(path string, v bson.RawValue) error {
		if s, ok := v.StringValue(); !ok || !slices.Contains(words, s) {
			return wrong(path, "one of "+strings.Join(words, ", "), v)
		}
		return nil
	}
}

// pattern is a string that matches.
func pattern(expression string) shape {
	re := regexp.MustCompile(expression)
	return func(path string, v bson.RawValue) error {
		if s, ok := v.StringValue(); !ok || !re.MatchString(s) {
			return wrong(path, "a string like "+expression, v)
		}
		return nil
	}
}

// list is an array of at least some elements.
func list(least int, of shape) shape {
	return func(path string, v bson.RawValue) error {
		arr, ok := v.Array()
		if !ok {
			return wrong(path, "an array", v)
		}
		n := 0
		for el := range arr.Values() {
			if err := of(fmt.Sprintf("%s[%d]", path, n), el); err != nil {
				return err
			}
			n++
		}
		if n < least {
			return wrong(path, fmt.Sprintf("at least %d elements", least), v)
		}
		return nil
	}
}

// either is a value of one of two shapes.
func either(a, b shape) shape {
	return func(path string, v bson.RawValue) error {
		err := a(path, v)
		if err != nil && b(path, v) == nil {
			return nil
		}
		return err
	}
}

// fields are those of an object, by name. A name that ends with an exclamation mark must be there.
type fields map[string]shape

// object is an object with these fields and no others.
func object(f fields) shape {
	known, required := fields{}, []string{}
	for name, of := range f {
		bare := strings.TrimSuffix(name, "!")
		known[bare] = of
		if bare != name {
			required = append(required, bare)
		}
	}
	slices.Sort(required)
	return func(path string, v bson.RawValue) error {
		if err := document(path, v); err != nil {
			return err
		}
		doc := bson.Raw(v.Value)
		for key, el := range doc.All() {
			key = strings.Clone(key)
			of := known[key]
			if of == nil {
				return fmt.Errorf("%s has a field %q, which is not known", path, key)
			}
			if err := of(path+"."+key, el); err != nil {
				return err
			}
		}
		for _, name := range required {
			if doc.Lookup(name).IsZero() {
				return fmt.Errorf("%s has no field %q", path, name)
			}
		}
		return nil
	}
}

// sized is an object with a number of fields.
func sized(least, most int, of shape) shape {
	return func(path string, v bson.RawValue) error {
		if err := of(path, v); err != nil {
			return err
		}
		n := 0
		for range bson.Raw(v.Value).All() {
			n++
		}
		if n < least || n > most {
			return wrong(path, fmt.Sprintf("an object of %d to %d fields", least, most), v)
		}
		return nil
	}
}

const many = 1 << 30

// without is an object that does not have this field.
func without(of shape, field, why string) shape {
	return func(path string, v bson.RawValue) error {
		if err := of(path, v); err != nil {
			return err
		}
		if !bson.Raw(v.Value).Lookup(field).IsZero() {
			return fmt.Errorf("%s has a field %q: %s", path, field, why)
		}
		return nil
	}
}

// apart is an object in which no two of these fields are together.
func apart(of shape, pairs ...[2]string) shape {
	return func(path string, v bson.RawValue) error {
		if err := of(path, v); err != nil {
			return err
		}
		for _, p := range pairs {
			if doc := bson.Raw(v.Value); !doc.Lookup(p[0]).IsZero() && !doc.Lookup(p[1]).IsZero() {
				return fmt.Errorf("%s has both %s and %s", path, p[0], p[1])
			}
		}
		return nil
	}
}

var (
	versionShape = pattern(`^[0-9]+(\.[0-9]+){0,2}$`)
	levelShape   = oneOf("emergency", "alert", "critical", "error", "warn", "notice", "info", "debug", "trace")
	components   = []string{"command", "topology", "serverSelection", "connection"}

	requirementShape = sized(1, many, object(fields{
		"minServerVersion": versionShape, "maxServerVersion": versionShape,
		"topologies":       list(1, oneOf("single", "replicaset", "sharded", "sharded-replicaset", "load-balanced")),
		"serverless":       oneOf("require", "forbid", "allow"),
		"serverParameters": sized(1, many, document), "auth": boolean, "authMechanism": text,
		"csfle": either(boolean, object(fields{"minLibmongocryptVersion": versionShape})),
	}))

	scopeShape = object(fields{"readConcern": document, "readPreference": document, "writeConcern": document,
		"timeoutMS": integer})

	dataShape = object(fields{"collectionName!": text, "databaseName!": text, "documents!": list(0, document),
		"createOptions": without(document, "writeConcern", "the runner sets it")})

	entityShape = sized(1, 1, object(fields{
		"client": object(fields{
			"id!": text, "uriOptions": document, "useMultipleMongoses": boolean,
			"observeEvents":                 list(1, oneOf(eventNames()...)),
			"ignoreCommandMonitoringEvents": list(1, text), "observeSensitiveCommands": boolean,
			"observeLogMessages":     sized(1, many, object(each(components, levelShape))),
			"observeTracingMessages": object(fields{"enableCommandPayload": boolean}),
			"serverApi":              object(fields{"version!": text, "strict": boolean, "deprecationErrors": boolean}),
			"awaitMinPoolSizeMS":     integer,
			"autoEncryptOpts": object(fields{"kmsProviders!": providers, "keyVaultNamespace!": text,
				"bypassAutoEncryption": boolean, "schemaMap": document,
				"encryptedFieldsMap": document, "extraOptions": document, "bypassQueryAnalysis": boolean,
				"keyExpirationMS": integer}),
		}),
		"clientEncryption": object(fields{"id!": text, "clientEncryptionOpts!": object(fields{
			"keyVaultClient!": text, "keyVaultNamespace!": text, "kmsProviders!": providers,
			"keyExpirationMS": integer})}),
		"database": object(fields{"id!": text, "client!": text, "databaseName!": text,
			"databaseOptions": scopeShape}),
		"collection": object(fields{"id!": text, "database!": text, "collectionName!": text,
			"collectionOptions": scopeShape}),
		"session": object(fields{"id!": text, "client!": text, "sessionOptions": document}),
		"bucket":  object(fields{"id!": text, "database!": text, "bucketOptions": document}),
		"thread":  object(fields{"id!": text}),
	}))

	errorShape = sized(1, many, object(fields{
		"isError": func(path string, v bson.RawValue) error {
			if !v.AsBool() || v.Type != bson.TypeBoolean {
				return wrong(path, "true", v)
			}
			return nil
		},
		"isClientError": boolean, "isTimeoutError": boolean, "errorContains": text, "errorCode": integer,
		"errorCodeName":      text,
		"errorLabelsContain": list(1, text), "errorLabelsOmit": list(1, text), "writeErrors": document,
		"writeConcernErrors": list(1, document),
		"errorResponse":      document, "expectResult": anything,
	}))

	operationShape = apart(object(fields{
		"name!": text, "object!": text, "arguments": document, "ignoreResultAndError": boolean,
		"expectError":  errorShape,
		"expectResult": anything, "saveResultAsEntity": text,
	}), [2]string{"expectError", "expectResult"}, [2]string{"expectError", "saveResultAsEntity"},
		[2]string{"ignoreResultAndError", "expectError"}, [2]string{"ignoreResultAndError", "expectResult"},
		[2]string{"ignoreResultAndError", "saveResultAsEntity"})

	messageShape = object(fields{"level!": levelShape, "component!": oneOf(components...), "failureIsRedacted": boolean,
		"data!": document})

	tracingShape = object(fields{"client!": text, "ignoreExtraSpans": boolean, "spans!": list(0, spanShape)})

	testShape = object(fields{
		"description!": text, "runOnRequirements": list(1, requirementShape), "skipReason": text,
		"operations!":  list(0, operationShape),
		"expectEvents": list(1, eventsShape),
		"expectLogMessages": list(1, object(fields{"client!": text, "messages!": list(0, messageShape),
			"ignoreMessages":      list(0, messageShape),
			"ignoreExtraMessages": boolean})),
		"expectTracingMessages": either(tracingShape, list(1, tracingShape)),
		"outcome":               list(1, dataShape),
	})

	fileShape = object(fields{
		"description!": text, "schemaVersion!": versionShape, "runOnRequirements": list(1, requirementShape),
		"createEntities": list(1, entityShape),
		"initialData":    list(1, dataShape), "tests!": list(1, testShape), "_yamlAnchors": document,
	})
)

// each gives several fields one shape.
func each(names []string, of shape) fields {
	f := fields{}
	for _, name := range names {
		f[name] = of
	}
	return f
}

func eventNames() []string {
	var names []string
	for _, events := range eventTypes {
		for name := range events {
			names = append(names, name)
		}
	}
	return names
}

// spanShape is a span of a trace, which may hold others.
func spanShape(path string, v bson.RawValue) error {
	return object(fields{"name!": text, "attributes!": document, "nested": list(1, spanShape)})(path, v)
}

// providers are the key services of client-side encryption, by name; their fields are strings or
// placeholders.
func providers(path string, v bson.RawValue) error {
	if err := document(path, v); err != nil {
		return err
	}
	field := either(text, object(fields{placeholder + "!": anything}))
	shapes := map[string]shape{
		"aws": object(each([]string{"accessKeyId", "secretAccessKey", "sessionToken"}, field)),
		"azure": object(each([]string{"tenantId", "clientId", "clientSecret", "identityPlatformEndpoint",
			"accessToken"}, field)),
		"gcp":   object(each([]string{"email", "privateKey", "endpoint", "accessToken"}, field)),
		"kmip":  object(each([]string{"endpoint"}, field)),
		"local": object(each([]string{"key"}, field)),
	}
	for name, el := range bson.Raw(v.Value).All() {
		kind, _, named := strings.Cut(name, ":")
		of := shapes[kind]
		if of == nil || named && !providerName.MatchString(name) {
			return fmt.Errorf("%s: %q is not the name of a key service", path, name)
		}
		if err := of(path+"."+name, el); err != nil {
			return err
		}
	}
	return nil
}

var providerName = regexp.MustCompile(`^[a-z]+:[A-Za-z0-9_]+$`)

// eventsShape is what is expected of a client; its events are of one type.
func eventsShape(path string, v bson.RawValue) error {
	err := object(fields{"client!": text, "eventType": oneOf("command", "cmap", "sdam"), "events!": list(0, document),
		"ignoreExtraEvents": boolean})(path, v)
	if err != nil {
		return err
	}
	kind, ok := bson.Raw(v.Value).Lookup("eventType").StringValue()
	if !ok {
		kind = "command"
	}
	return list(0, eventShape(kind))(path+".events", bson.Raw(v.Value).Lookup("events"))
}

// eventShape is an expected event of a type.
func eventShape(kind string) shape {
	serverKinds := []string{"Unknown", "Standalone", "Mongos", "PossiblePrimary", "RSPrimary", "RSSecondary", "RSOther",
		"RSArbiter", "RSGhost", "LoadBalancer"}
	topologyKinds := []string{"Single", "ReplicaSetNoPrimary", "ReplicaSetWithPrimary", "Sharded", "LoadBalanced",
		"Unknown"}
	description := map[string]shape{
		"serverDescriptionChangedEvent":   object(fields{"type": oneOf(serverKinds...)}),
		"topologyDescriptionChangedEvent": object(fields{"type": oneOf(topologyKinds...)}),
	}
	kinds := map[string]shape{
		"command": document, "reply": document, "commandName": text, "databaseName": text, "hasServiceId": boolean,
		"hasServerConnectionId":     boolean,
		"interruptInUseConnections": boolean, "reason": text, "awaited": boolean,
	}
	events := fields{}
	for name, known := range eventTypes[kind] {
		f := fields{}
		for _, field := range known {
			if f[field] = kinds[field]; f[field] == nil {
				f[field] = description[name]
			}
		}
		events[name] = object(f)
	}
	return sized(1, 1, object(events))
}

// anyEventShape is an expected event where its type is not told apart.
func anyEventShape(path string, v bson.RawValue) error {
	err := sized(1, 1, document)(path, v)
	if err != nil {
		return err
	}
	for name := range bson.Raw(v.Value).All() {
		for kind, events := range eventTypes {
			if _, ok := events[name]; ok {
				return eventShape(kind)(path, v)
			}
		}
	}
	return wrong(path, "an event", v)
}

// check says what is wrong with the form of a test file.
func check(file bson.Raw) error {
	return fileShape("file", bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: file})
}

// placeholders reports a placeholder where there is nothing to replace it with: anywhere but in a
// client's connection string and in the credentials of key services.
func placeholders(path string, v bson.RawValue) error {
	var doc bson.Raw
	switch v.Type {
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		doc = v.Value
	}
	for key, el := range doc.All() {
		switch key {
		case "uriOptions", "kmsProviders", "_yamlAnchors":
			continue
		case placeholder:
			return fmt.Errorf("%s is a placeholder, which cannot be replaced", path)
		}
		if err := placeholders(path+"."+key, el); err != nil {
			return err
		}
	}
	return nil
}

// placeholder is the key of a document that stands for a value which the test's environment has.
const placeholder = "$$placeholder"
