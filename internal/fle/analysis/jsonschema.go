package analysis

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"allium/bson"
)

// The grammar is that of the manual's "CSFLE Encryption Schemas": encrypt and encryptMetadata
// beside those keywords of $jsonSchema that say which fields there are. A schema from the server
// may have any keyword, but none that would make encryption depend on values.

// invalidEncrypt starts the reason for which a schema is refused: the specification's tests look
// for it.
const invalidEncrypt = "Invalid schema containing the 'encrypt' keyword."

var algorithms = map[string]Kind{
	"AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic": Deterministic,
	"AEAD_AES_256_CBC_HMAC_SHA_512-Random":        Random,
}

// pattern is one of patternProperties.
type pattern struct {
	source string
	re     *regexp.Regexp
	node   *node
}

// matches also tries key without a last line feed: in the server's regular expressions $ matches
// before it, too.
func (p *pattern) matches(key string) bool {
	return p.re.MatchString(key) || strings.HasSuffix(key, "\n") && p.re.MatchString(key[:len(key)-1])
}

// ParseJSONSchema returns the Schema for the $jsonSchema of the collection called namespace. A
// local schema, one that is not remote, may only have keywords that encryption needs.
func ParseJSONSchema(namespace string, schema bson.Raw, remote bool) (*Schema, error) {
	if err := schema.Validate(); err != nil {
		return nil, &Error{Namespace: namespace, Reason: "Invalid schema: " + err.Error()}
	}
	p := jsonParser{namespace: namespace, remote: remote}
	root, err := p.schema(schema, "", metadata{})
	if err != nil {
		return nil, err
	}
	if root != nil && root.enc != nil {
		return nil, p.invalid("", "a whole document cannot be encrypted", "put 'encrypt' on its fields")
	}
	if id := root.child("_id"); id != nil {
		return nil, p.invalid("_id", "the field '_id' cannot be encrypted",
			"name '_id' in 'properties' if a pattern covers it")
	}
	return &Schema{namespace: namespace, root: root, source: schema}, nil
}

type jsonParser struct {
	namespace string
	remote    bool
}

// metadata is what encrypt and encryptMetadata say.
type metadata struct {
	kind    Kind
	keyID   bson.UUID
	pointer string
	hasKey  bool
}

func (p *jsonParser) invalid(path, reason, instead string) error {
	return &Error{Namespace: p.namespace, Path: path, Reason: invalidEncrypt + " " + reason, Instead: instead}
}

// schema parses the schema of one field; in is the encryptMetadata of those above it.
func (p *jsonParser) schema(s bson.Raw, path string, in metadata) (*node, error) {
	var names []string
	object := false
	for key, v := range s.All() {
		if slices.Contains(names, key) {
			return nil, &Error{Namespace: p.namespace, Path: path,
				Reason: "Invalid schema: the keyword '" + key + "' is there twice"}
		}
		names = append(names, key)
		if !p.remote && !localKeywords[key] {
			return nil, &Error{Namespace: p.namespace, Path: path,
				Reason:  "Invalid schema: JSON schema keyword '" + key + "' is only allowed with a remote schema",
				Instead: "put it into the validator of the collection on the server"}
		}
		if key == "bsonType" || key == "type" {
			object = onlyObject(v)
		}
	}
	if slices.Contains(names, "encrypt") {
		return p.encrypt(s, path, in)
	}
	if v := s.Lookup("encryptMetadata"); !v.IsZero() {
		if !object {
			return nil, p.invalid(path, "'encryptMetadata' needs bsonType 'object' beside it", "")
		}
		doc, ok := v.Document()
		if !ok {
			return nil, p.invalid(path, "'encryptMetadata' must be an object", "")
		}
		for key := range doc.All() {
			if key != "algorithm" && key != "keyId" {
				return nil, p.invalid(path, "'encryptMetadata' cannot have '"+key+"'", "it has 'algorithm' and 'keyId'")
			}
		}
		var err error
		if in, err = p.metadata(doc, path, in); err != nil {
			return nil, err
		}
	}
	n := &node{}
	for key, v := range s.All() {
		if err := p.keyword(n, key, v, path, in); err != nil {
			return nil, err
		}
	}
	if n = n.prune(); n != nil && !object {
		return nil, p.invalid(path, "an object that holds encrypted fields needs bsonType 'object' and no other type",
			"")
	}
	return n, nil
}

// keyword adds what one keyword says to n.
func (p *jsonParser) keyword(n *node, key string, v bson.RawValue, path string, in metadata) error {
	switch key {
	case "properties", "patternProperties":
		doc, ok := v.Document()
		if !ok {
			return &Error{Namespace: p.namespace, Path: path, Reason: "Invalid schema: '" + key + "' must be an object"}
		}
		for name, v := range doc.All() {
			inner, ok := v.Document()
			if !ok {
				return &Error{Namespace: p.namespace, Path: join(path, name),
					Reason: "Invalid schema: what '" + key + "' holds must be objects"}
			}
			c, err := p.schema(inner, join(path, name), in)
			if err != nil {
				return err
			}
			if err := p.property(n, key, name, c, path); err != nil {
				return err
			}
		}
	case "additionalProperties":
		doc, ok := v.Document()
		if !ok {
			if _, ok := v.Boolean(); !ok {
				return &Error{Namespace: p.namespace, Path: path,
					Reason: "Invalid schema: 'additionalProperties' must be an object or a boolean"}
			}
			return nil
		}
		c, err := p.schema(doc, join(path, "*"), in)
		if err != nil {
			return err
		}
		n.rest = c
	case "encryptMetadata":
	default:
		if plainKeywords[key] {
			return nil
		}
		if word := encryptWithin(v); word != "" {
			return p.invalid(path, "'"+word+"' cannot stand under '"+key+"'",
				"it may stand under 'properties', 'patternProperties' and 'additionalProperties'")
		}
	}
	return nil
}

// property adds one of properties or patternProperties.
func (p *jsonParser) property(n *node, key, name string, c *node, path string) error {
	if key == "patternProperties" {
		re, err := regexp.Compile(name)
		if err != nil {
			if c == nil && !p.remote {
				return &Error{Namespace: p.namespace, Path: path, Reason: "Invalid schema: " + err.Error()}
			}
			// A field that such a pattern matches would not have the encryption of
			// additionalProperties.
			return p.invalid(path, fmt.Sprintf("the regular expression %q is not understood: %v", name, err), "")
		}
		n.patterns = append(n.patterns, pattern{source: name, re: re, node: c})
		return nil
	}
	if c != nil && (strings.Contains(name, ".") || strings.HasPrefix(name, "$") || name == "") {
		return p.invalid(path, fmt.Sprintf("a field called %q cannot be reached in queries", name),
			"nest 'properties' instead of a dot")
	}
	if n.props == nil {
		n.props = map[string]*node{}
	}
	if _, ok := n.props[name]; ok {
		return &Error{Namespace: p.namespace, Path: join(path, name),
			Reason: "Invalid schema: the property is there twice"}
	}
	n.props[name] = c
	return nil
}

// localKeywords are those that a local schema may have.
var localKeywords = map[string]bool{
	"properties": true, "patternProperties": true, "additionalProperties": true, "bsonType": true, "type": true,
	"encrypt": true, "encryptMetadata": true, "title": true, "description": true,
}

// plainKeywords are those whose values hold no schemas.
var plainKeywords = map[string]bool{
	"bsonType": true, "type": true, "title": true, "description": true, "enum": true, "required": true, "minimum": true,
	"maximum": true, "exclusiveMinimum": true, "exclusiveMaximum": true, "multipleOf": true, "minLength": true,
	"maxLength": true,
	"pattern":   true, "minItems": true, "maxItems": true, "uniqueItems": true, "minProperties": true,
	"maxProperties": true,
}

// encryptWithin returns the first keyword of encryption at any depth of v, "" for none.
func encryptWithin(v bson.RawValue) string {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return ""
	}
	for key, inner := range bson.Raw(v.Value).All() {
		if key == "encrypt" || key == "encryptMetadata" {
			return key
		}
		if word := encryptWithin(inner); word != "" {
			return word
		}
	}
	return ""
}

func onlyObject(v bson.RawValue) bool {
	if array, ok := v.Array(); ok {
		n := 0
		for inner := range array.Values() {
			if name, _ := inner.StringValue(); name != "object" {
				return false
			}
			n++
		}
		return n == 1
	}
	name, _ := v.StringValue()
	return name == "object"
}

// encrypt parses the schema of an encrypted field.
func (p *jsonParser) encrypt(s bson.Raw, path string, in metadata) (*node, error) {
	for key := range s.All() {
		if key != "encrypt" && key != "title" && key != "description" {
			return nil, p.invalid(path, "'encrypt' cannot be used in conjunction with '"+key+"'", "")
		}
	}
	doc, ok := s.Lookup("encrypt").Document()
	if !ok {
		return nil, p.invalid(path, "'encrypt' must be an object", "")
	}
	e := &Encryption{namespace: p.namespace}
	for key, v := range doc.All() {
		switch key {
		case "algorithm", "keyId":
		case "bsonType":
			types, err := p.types(v, path)
			if err != nil {
				return nil, err
			}
			e.types = types
		default:
			return nil, p.invalid(path, "'encrypt' cannot have '"+key+"'", "it has 'algorithm', 'bsonType' and 'keyId'")
		}
	}
	m, err := p.metadata(doc, path, in)
	if err != nil {
		return nil, err
	}
	if m.kind == 0 || !m.hasKey {
		return nil, p.invalid(path,
			"'encrypt' needs 'algorithm' and 'keyId', its own or of an 'encryptMetadata' above it", "")
	}
	e.Kind, e.KeyID, e.KeyPointer = m.kind, m.keyID, m.pointer
	for _, t := range e.types {
		if singleValued(t) {
			return nil, p.invalid(path, "Cannot encrypt element of type: "+typeName(t)+", which has one value only", "")
		}
	}
	if e.Kind == Deterministic {
		switch {
		case e.KeyPointer != "":
			return nil, p.invalid(path, "deterministic encryption needs the UUID of a key, not a JSON pointer", "")
		case len(e.types) != 1:
			return nil, p.invalid(path, "deterministic encryption needs exactly one bsonType", "")
		case !equatable(e.types[0], Deterministic):
			return nil, p.invalid(path, "Cannot encrypt element of type: "+typeName(e.types[0])+" deterministically",
				"encrypt it with AEAD_AES_256_CBC_HMAC_SHA_512-Random")
		}
	}
	return &node{enc: e}, nil
}

// types parses the bsonType of encrypt.
func (p *jsonParser) types(v bson.RawValue, path string) (typeSet, error) {
	values := []bson.RawValue{v}
	if array, ok := v.Array(); ok {
		values = slices.Collect(array.Values())
	}
	var out typeSet
	for _, v := range values {
		name, _ := v.StringValue()
		list := typeSet{typeNames[name]}
		if name == "number" {
			list = typeSet{bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128}
		}
		for _, t := range list {
			if t == 0 {
				return nil, p.invalid(path, fmt.Sprintf("bsonType %q is not a type", name), "")
			}
			if !out.has(t) {
				out = append(out, t)
			}
		}
	}
	if len(out) == 0 {
		return nil, p.invalid(path, "bsonType is an empty array", "")
	}
	return out, nil
}

// metadata parses algorithm and keyId of doc; what is missing is that of in.
func (p *jsonParser) metadata(doc bson.Raw, path string, in metadata) (metadata, error) {
	if v := doc.Lookup("algorithm"); !v.IsZero() {
		name, _ := v.StringValue()
		kind, ok := algorithms[name]
		if !ok {
			return in, p.invalid(path, fmt.Sprintf("%q is not an algorithm", name), "")
		}
		in.kind = kind
	}
	v := doc.Lookup("keyId")
	if v.IsZero() {
		return in, nil
	}
	in.hasKey, in.keyID, in.pointer = true, bson.UUID{}, ""
	if s, ok := v.StringValue(); ok {
		if !strings.HasPrefix(s, "/") || strings.HasSuffix(s, "/") {
			return in, p.invalid(path, fmt.Sprintf("keyId %q is not a JSON pointer to a field", s),
				"write it as \"/field\"")
		}
		in.pointer = s
		return in, nil
	}
	array, ok := v.Array()
	if !ok {
		return in, p.invalid(path, "keyId must be an array with one UUID, or a JSON pointer", "")
	}
	ids := slices.Collect(array.Values())
	if len(ids) != 1 {
		return in, p.invalid(path, "keyId must be an array with one UUID", "")
	}
	id, ok := uuid(ids[0])
	if !ok {
		return in, p.invalid(path, "keyId must be an array with one UUID, a binary of subtype 4", "")
	}
	in.keyID = id
	return in, nil
}

func uuid(v bson.RawValue) (bson.UUID, bool) {
	b, ok := v.Binary()
	if !ok || b.Subtype != bson.BinaryUUID {
		return bson.UUID{}, false
	}
	id, err := b.UUID()
	return id, err == nil
}
