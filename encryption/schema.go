package encryption

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/crypt"
	"allium/internal/fle/analysis"
)

// schemaExpiration is how long it is remembered what a collection encrypts (specification: Client
// Side Encryption, "JSONSchema caching").
const schemaExpiration = time.Minute

// collections asks the server which fields of its collections are encrypted, and remembers it for a
// while.
type collections struct {
	client *allium.Client
	log    logger

	mu    sync.Mutex
	found map[string]found
}

type found struct {
	schema *schema
	until  time.Time
}

// schemas returns the schemas of namespaces: those that the program has, those that cmd itself has,
// and those that the server has.
func (c *cipher) schemas(ctx context.Context, cmd bson.Raw, namespaces []string) (map[string]*schema, error) {
	out := make(map[string]*schema, len(namespaces))
	var ask []string
	for i, ns := range namespaces {
		if s, ok := c.known[ns]; ok {
			out[ns] = s
			continue
		}
		if i == 0 {
			s, ok, err := own(ns, cmd)
			if err != nil {
				return nil, err
			}
			if ok {
				out[ns] = s
				continue
			}
		}
		if s, ok := c.collections.cached(ns); ok {
			out[ns] = s
			continue
		}
		ask = append(ask, ns)
	}
	// The collections need not be in the database that the command is sent to: a bulk write of the
	// client goes to admin.
	for len(ask) > 0 {
		db, _, _ := strings.Cut(ask[0], ".")
		here := func(ns string) bool { return strings.HasPrefix(ns, db+".") }
		elsewhere := slices.DeleteFunc(slices.Clone(ask), here)
		more, err := c.collections.ask(ctx, db, slices.DeleteFunc(ask, func(ns string) bool { return !here(ns) }))
		if err != nil {
			return nil, err
		}
		for ns, s := range more {
			out[ns] = s
		}
		ask = elsewhere
	}
	return out, nil
}

// own returns the schema that a command gives its collection. A collection that is yet to be
// created has no other.
func own(ns string, cmd bson.Raw) (*schema, bool, error) {
	name := ""
	for key := range cmd.All() {
		name = key
		break
	}
	if name != "create" && name != "collMod" {
		return nil, false, nil
	}
	if fields, ok := cmd.Lookup("encryptedFields").Document(); ok {
		s, err := parseFields(ns, fields)
		return s, true, err
	}
	if doc, ok := cmd.Lookup("validator", "$jsonSchema").Document(); ok {
		s, err := analysis.ParseJSONSchema(ns, doc, true)
		return &schema{analysis: s}, true, err
	}
	return nil, name == "create", nil
}

func (c *collections) cached(ns string) (*schema, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.found[ns]
	return f.schema, ok && time.Now().Before(f.until)
}

// forget forgets the schemas that a command gives to collections or takes from them.
func (c *collections) forget(db string, cmd bson.Raw) {
	gone := func(string) bool { return false }
	for name, target := range cmd.All() {
		collection, _ := target.StringValue()
		switch name {
		case "create", "collMod", "drop":
			gone = func(ns string) bool { return ns == db+"."+collection }
		case "renameCollection": // it names both with their databases
			to, _ := cmd.Lookup("to").StringValue()
			gone = func(ns string) bool { return ns == collection || ns == to }
		case "dropDatabase":
			gone = func(ns string) bool { return strings.HasPrefix(ns, db+".") }
		default:
			return
		}
		break
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.found, func(ns string, _ found) bool { return gone(ns) })
}

// ask asks the server.
func (c *collections) ask(ctx context.Context, db string, namespaces []string) (map[string]*schema, error) {
	began := time.Now()
	out, err := c.list(ctx, db, namespaces)
	c.log.schemas(ctx, namespaces, began, err)
	return out, err
}

func (c *collections) list(ctx context.Context, db string, namespaces []string) (map[string]*schema, error) {
	names := make(bson.A, len(namespaces))
	for i, ns := range namespaces {
		_, name, _ := strings.Cut(ns, ".")
		names[i] = name
	}
	filter := bson.D{{Key: "name", Value: names[0]}}
	if len(names) > 1 {
		filter = bson.D{{Key: "name", Value: bson.D{{Key: "$in", Value: names}}}}
	}
	cursor, err := allium.RunCursorCommand[bson.Raw](allium.WithSession(ctx, nil), c.client.Database(db),
		bson.D{{Key: "listCollections", Value: 1}, {Key: "filter", Value: filter}, {Key: "cursor", Value: bson.D{}}})
	if err != nil {
		return nil, fmt.Errorf("schemas of %s: %w", strings.Join(namespaces, ", "), err)
	}
	infos, err := cursor.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("schemas of %s: %w", strings.Join(namespaces, ", "), err)
	}
	out := make(map[string]*schema, len(namespaces))
	for _, ns := range namespaces {
		out[ns] = nil
	}
	for _, info := range infos {
		name, _ := info.Lookup("name").StringValue()
		ns := db + "." + name
		if !slices.Contains(namespaces, ns) {
			continue
		}
		if out[ns], err = parseInfo(ns, info); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found == nil {
		c.found = make(map[string]found)
	}
	until := time.Now().Add(schemaExpiration)
	for ns, s := range out {
		c.found[ns] = found{s, until}
	}
	return out, nil
}

// parseInfo returns the schema of a collection that the server tells about.
func parseInfo(ns string, info bson.Raw) (*schema, error) {
	if kind, _ := info.Lookup("type").StringValue(); kind == "view" {
		return nil, &analysis.Error{Namespace: ns, Reason: "cannot auto encrypt a view: " + ns,
			Instead: "use the collection that it reads"}
	}
	if fields, ok := info.Lookup("options", "encryptedFields").Document(); ok {
		return parseFields(ns, slices.Clone(fields))
	}
	if doc, ok := info.Lookup("options", "validator", "$jsonSchema").Document(); ok {
		s, err := analysis.ParseJSONSchema(ns, slices.Clone(doc), true)
		if err != nil {
			return nil, err
		}
		return &schema{analysis: s}, nil
	}
	return nil, nil
}

// parseFields returns the schema of encryptedFields. It is not complete while a key is named and
// not identified.
func parseFields(ns string, fields bson.Raw) (*schema, error) {
	fields, names, err := crypt.CompleteFields(ns, fields)
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		return &schema{fields: fields}, nil
	}
	s, err := analysis.ParseEncryptedFields(ns, fields)
	if err != nil {
		return nil, err
	}
	return &schema{analysis: s, fields: fields}, nil
}

// named returns the schema of encryptedFields whose keys are found by their names.
func (c *cipher) named(ctx context.Context, ns string, fields bson.Raw) (*schema, error) {
	fields, err := c.keys.NamedFields(ctx, ns, fields)
	if err != nil {
		return nil, err
	}
	s, err := analysis.ParseEncryptedFields(ns, fields)
	if err != nil {
		return nil, err
	}
	return &schema{analysis: s, fields: fields}, nil
}

// queryable adds what a server needs to a command on a collection with Queryable Encryption
// (specification: Client Side Encryption, "encryptionInformation").
func (c *cipher) queryable(ctx context.Context, cmd bson.Raw, ns string, fields bson.Raw,
	others []crypt.Collection) (bson.Raw, error) {
	name, target := "", bson.RawValue{}
	for key, v := range cmd.All() {
		name, target = key, v
		break
	}
	tokens := ""
	switch name {
	case "compactStructuredEncryptionData":
		tokens = "compactionTokens"
	case "cleanupStructuredEncryptionData":
		tokens = "cleanupTokens"
	}
	out := cmd
	if crypt.NeedsInformation(name, cmd, fields) {
		switch name {
		case "explain":
			inner, ok := target.Document()
			if !ok {
				return cmd, nil
			}
			out = replaceField(cmd, "explain", crypt.AppendInformation(inner, ns, fields, others...))
		case "bulkWrite":
			out = crypt.AppendBulkInformation(cmd, ns, fields)
		default:
			out = crypt.AppendInformation(cmd, ns, fields, others...)
		}
	}
	if tokens == "" {
		return out, nil
	}
	return c.keys.AppendTokens(ctx, out, tokens, fields)
}

// replaceField returns doc with another document in one of its fields.
func replaceField(doc bson.Raw, name string, with bson.Raw) bson.Raw {
	start, dst := bson.BeginDocument(nil)
	for key, v := range doc.All() {
		if key == name {
			dst = bson.AppendDocument(dst, key, with)
		} else {
			dst = bson.AppendRawValue(dst, key, v)
		}
	}
	return bson.EndDocument(dst, start)
}
